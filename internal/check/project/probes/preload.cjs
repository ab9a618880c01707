'use strict';
// Keeps the results of jest, mocha, vitest, deno and node --test, in whatever process they run.
const fs = require('fs');
const path = require('path');
const Module = require('module');

const results = process.env.PERDURE_RESULTS;
const active = results && !process.env.PERDURE_IN_RUNNER && !globalThis.perdureProbe;
globalThis.perdureProbe = true;

// begin makes the folder of a run and returns the file of its results.
function begin(kind) {
  let place = process.cwd();
  const root = process.env.PERDURE_ROOT || '';
  if (place.startsWith(root)) place = place.slice(root.length);
  place = place.replace(/[^A-Za-z0-9._-]/g, '+').slice(-150);
  for (let n = 101; n < 999; n++) {
    const folder = path.join(results, `${kind}@${place}@${n}`);
    try {
      fs.mkdirSync(folder);
    } catch (err) {
      if (err.code === 'EEXIST') continue;
      return null;
    }
    process.env.PERDURE_IN_RUNNER = '1';
    return path.join(folder, 'result');
  }
  return null;
}

function write(file, text) {
  fs.writeFileSync(file + '.part', text);
  fs.renameSync(file + '.part', file);
}

function attribute(value) {
  return String(value).replace(/[&<>"\u0000-\u001f]/g, (c) => `&#${c.charCodeAt(0)};`);
}

// jest returns @jest/core, of which runCLI keeps its results.
function jest(core, file) {
  const runCLI = async (...args) => {
    const out = begin('jest');
    const done = await core.runCLI(...args);
    try {
      const format = Module.createRequire(file)('@jest/test-result').formatTestResults;
      if (out && done && done.results) write(out, JSON.stringify(format(done.results)));
    } catch (err) {
      process.stderr.write(`perdure: results of jest not kept: ${err.message}\n`);
    }
    return done;
  };
  return new Proxy(core, { get: (target, key) => (key === 'runCLI' ? runCLI : target[key]) });
}

// mocha makes the runs of Mocha keep their results.
function mocha(Mocha) {
  const run = Mocha.prototype.run;
  Mocha.prototype.perdureProbe = true;
  Mocha.prototype.run = function (...args) {
    const out = begin('mocha');
    const runner = run.apply(this, args);
    if (!out || !runner || !runner.on) return runner;
    const cases = [];
    let failed = 0;
    const add = (test, inside) => cases.push(
      `<testcase name="${attribute(test.title)}" classname="${attribute(test.parent ? test.parent.titlePath().join(' > ') : '')}"` +
      ` file="${attribute(test.file || (test.parent && test.parent.file) || '')}" time="${(test.duration || 0) / 1000}">${inside}</testcase>`);
    runner.on('pass', (test) => add(test, ''));
    runner.on('pending', (test) => add(test, '<skipped/>'));
    runner.on('fail', (test, err) => {
      failed++;
      add(test, `<failure message="${attribute((err && (err.stack || err.message)) || err)}"/>`);
    });
    runner.on('end', () => write(out,
      `<testsuite name="mocha" tests="${cases.length}" failures="${failed}">\n${cases.join('\n')}\n</testsuite>\n`));
    return runner;
  };
}

function hook() {
  const load = Module._load;
  Module._load = function (request, parent, ...rest) {
    const got = load.call(this, request, parent, ...rest);
    try {
      if (request === '@jest/core' || /@jest[\\/]core[\\/]build[\\/]index\.js$/.test(request)) {
        return jest(got, Module._resolveFilename(request, parent));
      }
      if (/mocha(\.js)?$/.test(request) && typeof got === 'function' && got.name === 'Mocha' && got.prototype.run &&
        !got.prototype.perdureProbe) mocha(got);
    } catch (err) {
      process.stderr.write(`perdure: ${request} not observed: ${err.message}\n`);
    }
    return got;
  };
}

// repeat runs node --test with another reporter, since reporters are read before this file.
function repeat() {
  const args = process.execArgv;
  const set = (name) => args.filter((arg) => arg === name || arg.startsWith(name + '='));
  if (args.includes('--watch') || set('--test-reporter-destination').length || set('--test-reporter').length > 1) return;
  const out = begin('node');
  if (!out) return;
  const extra = set('--test-reporter').length ? [] : ['--test-reporter=spec'];
  extra.push('--test-reporter-destination=stdout', '--test-reporter=junit', `--test-reporter-destination=${out}`);
  const done = require('child_process').spawnSync(process.execPath, [...args, ...extra, ...process.argv.slice(1)],
    { stdio: 'inherit' });
  if (done.signal) process.kill(process.pid, done.signal);
  process.exit(done.status === null ? 1 : done.status);
}

// edit adds arguments to programs that cannot be reached otherwise.
function edit() {
  const script = (process.argv[1] || '').replace(/\\/g, '/');
  const has = (name) => process.argv.some((arg) => arg === name || arg.startsWith(name + '=') || arg.startsWith(name + '.'));
  if (/\/vitest(\/vitest\.mjs)?$/.test(script) && !has('--outputFile') && !['bench', 'list', 'init'].includes(process.argv[2])) {
    const out = begin('vitest');
    if (!out) return;
    if (!has('--reporter')) process.argv.push('--reporter=default');
    process.argv.push('--reporter=junit', `--outputFile.junit=${out}`);
  } else if (/\/deno(\/bin\.cjs)?$/.test(script) && process.argv[2] === 'test' && !has('--junit-path')) {
    const out = begin('deno');
    if (out) process.argv.splice(3, 0, `--junit-path=${out}`);
  }
}

// keepFirst keeps the probes first in the PATH that package managers give to scripts.
function keepFirst() {
  const shims = path.join(path.dirname(process.env.PERDURE_PROBES || ''), 'shims');
  const children = require('child_process');
  for (const name of ['spawn', 'spawnSync']) {
    const original = children[name];
    children[name] = function (file, ...rest) {
      const options = rest.find((arg) => arg && typeof arg === 'object' && !Array.isArray(arg));
      const env = options && options.env;
      if (env && env.PATH && env.PATH.split(path.delimiter).indexOf(shims) > 0) {
        env.PATH = [shims, ...env.PATH.split(path.delimiter).filter((dir) => dir !== shims)].join(path.delimiter);
      }
      return original.call(this, file, ...rest);
    };
  }
}

if (active && require('worker_threads').isMainThread) {
  keepFirst();
  if (process.execArgv.includes('--test') && !process.env.NODE_TEST_CONTEXT) repeat();
  edit();
  hook();
}
