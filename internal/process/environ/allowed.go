package environ

import "slices"

// allowed returns the allow-list in groups. Variables in it say where something is, or how
// programs print; those that can hold a secret are in the group of their comment.
func allowed() [][]string {
	return slices.Concat(system(), tools())
}

func system() [][]string {
	return [][]string{
		// The user and the folders. XDG_RUNTIME_DIR leads to sockets of the user's session,
		// which a program of the same user finds without it.
		{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "OLDPWD", "TMPDIR", "TMP", "TEMP", "XDG_*"},
		// Language and time. The last one is the encoding of text on macOS.
		{"LANG", "LANGUAGE", "LC_*", "LOCALE_ARCHIVE", "LOCPATH", "TZ", "TZDIR", "__CF_USER_TEXT_ENCODING"},
		// Output, and whether a person is there.
		{"TERM", "COLORTERM", "TERMINFO", "TERMINFO_DIRS", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR",
			"CLICOLOR_FORCE", "CI"},
		// The network. A proxy can contain a password; without it there is no network.
		{"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "ftp_proxy",
			"all_proxy", "no_proxy"},
		// Certificates of authorities.
		{"SSL_CERT_FILE", "SSL_CERT_DIR", "NIX_SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
			"CURL_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "AWS_CA_BUNDLE",
			"DENO_CERT", "HTTPLIB2_CA_CERTS", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE"},
		// Git: who commits, and where its settings are. SSH_AUTH_SOCK, which signs with the
		// user's keys, is not passed.
		{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_CONFIG_GLOBAL",
			"GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH", "GIT_TEMPLATE_DIR"},
		// Windows: programs do not start without some of these.
		{"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
			"ALLUSERSPROFILE", "PUBLIC", "USERPROFILE", "USERNAME", "USERDOMAIN", "HOMEDRIVE", "HOMEPATH", "COMPUTERNAME",
			"OS", "NUMBER_OF_PROCESSORS", "PROCESSOR_*",
			"PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432", "COMMONPROGRAMFILES", "COMMONPROGRAMFILES(X86)",
			"COMMONPROGRAMW6432", "PSMODULEPATH", "MSYSTEM", "INCLUDE", "LIB", "LIBPATH", "VCINSTALLDIR", "VSINSTALLDIR",
			"VCTOOLSINSTALLDIR", "WINDOWSSDKDIR"},
		// perdure: which project a command of the agent works on. PERDURE_STORE, which can
		// contain a password, is not passed.
		{"PERDURE_DIR", "PERDURE_SOCKET"},
	}
}

// tools are the locations and the target of tool chains.
func tools() [][]string {
	return [][]string{
		// Go. GOPROXY can contain a password; without it modules are not found.
		{"GOPATH", "GOROOT", "GOMODCACHE", "GOCACHE", "GOBIN", "GOENV", "GOTMPDIR", "GOPROXY", "GOPRIVATE", "GONOPROXY",
			"GONOSUMDB", "GOSUMDB", "GOINSECURE", "GOVCS", "GOFLAGS", "GOTOOLCHAIN", "GOWORK", "GO111MODULE", "GOOS",
			"GOARCH", "GOARM", "GOARM64", "GOAMD64", "GOEXPERIMENT", "GODEBUG", "GOMAXPROCS", "GOMEMLIMIT", "GOGC",
			"CGO_ENABLED", "CGO_CFLAGS", "CGO_CPPFLAGS", "CGO_CXXFLAGS", "CGO_LDFLAGS"},
		// C and C++.
		{"CC", "CXX", "CPP", "AR", "LD", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "PKG_CONFIG_PATH",
			"CMAKE_PREFIX_PATH", "CMAKE_GENERATOR", "CCACHE_DIR", "SDKROOT", "DEVELOPER_DIR", "MACOSX_DEPLOYMENT_TARGET",
			"VCPKG_ROOT", "CUDA_HOME", "CUDA_PATH"},
		// Java, Kotlin, Scala, Android.
		{"JAVA_HOME", "JDK_HOME", "JRE_HOME", "M2_HOME", "MAVEN_HOME", "GRADLE_HOME", "GRADLE_USER_HOME", "ANT_HOME",
			"SDKMAN_DIR", "SBT_HOME", "KOTLIN_HOME", "SCALA_HOME", "COURSIER_CACHE", "ANDROID_HOME", "ANDROID_SDK_ROOT",
			"ANDROID_NDK_HOME", "ANDROID_USER_HOME"},
		// JavaScript.
		{"NVM_DIR", "NVM_BIN", "NVM_INC", "FNM_DIR", "FNM_MULTISHELL_PATH", "VOLTA_HOME", "N_PREFIX", "NODENV_ROOT",
			"NODENV_VERSION", "NODE_ENV", "NODE_VERSION", "NPM_CONFIG_CACHE", "NPM_CONFIG_PREFIX", "npm_config_cache",
			"npm_config_prefix", "PNPM_HOME", "YARN_CACHE_FOLDER", "COREPACK_HOME", "BUN_INSTALL", "DENO_DIR",
			"DENO_INSTALL", "PLAYWRIGHT_BROWSERS_PATH", "PUPPETEER_EXECUTABLE_PATH", "PUPPETEER_CACHE_DIR", "CHROME_BIN"},
		// Python.
		{"PYENV_ROOT", "PYENV_VERSION", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "CONDA_EXE",
			"CONDA_PYTHON_EXE", "CONDA_SHLVL", "MAMBA_EXE", "MAMBA_ROOT_PREFIX", "POETRY_HOME", "POETRY_CACHE_DIR",
			"PIPX_HOME", "PIP_CACHE_DIR", "PIPENV_CACHE_DIR", "UV_CACHE_DIR", "UV_PYTHON_INSTALL_DIR", "UV_TOOL_DIR",
			"PYTHONUSERBASE", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8"},
		// Rust.
		{"CARGO_HOME", "CARGO_TARGET_DIR", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "RUSTFLAGS", "RUST_BACKTRACE"},
		// Ruby.
		{"RBENV_ROOT", "RBENV_VERSION", "GEM_HOME", "GEM_PATH", "BUNDLE_PATH", "BUNDLE_GEMFILE", "rvm_path"},
		// .NET.
		{"DOTNET_ROOT", "DOTNET_CLI_HOME", "DOTNET_CLI_TELEMETRY_OPTOUT", "DOTNET_NOLOGO", "NUGET_PACKAGES"},
		// PHP, Perl, Haskell, Erlang, Dart, OCaml, Swift, Zig.
		{"COMPOSER_HOME", "COMPOSER_CACHE_DIR", "PERLBREW_ROOT", "GHCUP_INSTALL_BASE_PREFIX", "STACK_ROOT", "CABAL_DIR",
			"MIX_HOME", "HEX_HOME", "KERL_BASE_DIR", "FLUTTER_ROOT", "PUB_CACHE", "OPAMROOT", "OPAM_SWITCH_PREFIX",
			"ZIG_GLOBAL_CACHE_DIR"},
		// Managers of several languages.
		{"ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "MISE_CONFIG_DIR", "MISE_CACHE_DIR", "HOMEBREW_PREFIX",
			"HOMEBREW_CELLAR", "HOMEBREW_REPOSITORY", "NIX_PATH", "NIX_PROFILES", "BAZELISK_HOME"},
	}
}
