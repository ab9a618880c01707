# Adds a formatter that writes the results of the examples for programs.
if ENV['PERDURE_RESULTS'] && ENV['PERDURE_IN_RUNNER'].to_s.empty?
  place = Dir.pwd.delete_prefix(ENV['PERDURE_ROOT'].to_s).gsub(/[^A-Za-z0-9._-]/, '+')
  place = place[-150..] if place.length > 150
  n = 101
  begin
    folder = File.join(ENV['PERDURE_RESULTS'], "rspec@#{place}@#{n}")
    Dir.mkdir(folder)
  rescue Errno::EEXIST
    n += 1
    retry if n < 999
    folder = nil
  end
  if folder
    ENV['PERDURE_IN_RUNNER'] = '1'
    RSpec.configure do |config|
      config.before(:suite) { config.add_formatter('json', File.join(folder, 'result')) }
    end
  end
end
