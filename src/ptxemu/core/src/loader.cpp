#include "loader.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <vector>

#include "settings.hpp"

extern char** environ;

namespace ptxemu {
namespace {

constexpr int kRefused = 2;  // exit code of the loader when ptxas refuses the text

// A file of its own that is gone with this object.
class ScratchFile {
public:
    ScratchFile() {
        const char* folder = std::getenv("TMPDIR");
        path_ = std::string(folder != nullptr ? folder : "/tmp") + "/ptxemu-XXXXXX";
        file_ = mkostemp(path_.data(), O_CLOEXEC);
    }
    ~ScratchFile() {
        if (file_ < 0) return;
        ::close(file_);
        ::unlink(path_.c_str());
    }
    ScratchFile(const ScratchFile&) = delete;
    ScratchFile& operator=(const ScratchFile&) = delete;
    const std::string& path() const { return path_; }
    int file() const { return file_; }
    std::string content() const {
        std::string text;
        char part[4096];
        ::lseek(file_, 0, SEEK_SET);
        for (ssize_t count; (count = ::read(file_, part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(count));
        return text;
    }

private:
    std::string path_;
    int file_;
};

std::string trimmed(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
}

// Exit code of the command with its output and messages in files; -1 when it did not start or was killed.
int run(std::vector<std::string> words, const ScratchFile& output, const ScratchFile& messages) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, output.file(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, messages.file(), STDERR_FILENO);
    pid_t child = 0;
    const int failed = posix_spawn(&child, arguments[0], &files, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    int status = 0;
    if (failed != 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
    return WEXITSTATUS(status);
}

}  // namespace

LoadedText assemble(const std::string& ptx) {
    std::vector<std::string> words;
    std::istringstream command(Settings::get().loader);
    for (std::string word; std::getline(command, word);) words.push_back(word);
    if (words.empty()) return {Loading::no_loader, "", "nothing here assembles PTX at run time"};
    const ScratchFile text, output, messages;
    if (text.file() < 0 || output.file() < 0 || messages.file() < 0) return {Loading::no_loader, "", "no temporary files"};
    append_to(text.file(), ptx);
    words.push_back(text.path());
    const int code = run(words, output, messages);
    if (code == 0) return {Loading::done, trimmed(output.content()), ""};
    const Loading outcome = code == kRefused ? Loading::refused_by_ptxas : Loading::not_emulatable;
    return {outcome, "", trimmed(messages.content())};
}

}  // namespace ptxemu
