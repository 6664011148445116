// What the program is doing: told in the report when somebody who has lost patience asks by a signal, which kills it.
#pragma once

#include <vector>

namespace ptxemu {

struct Launch;
struct Worker;

// While one of these lives, a kernel is executed.
class Executing {
public:
    Executing(const Launch& launch, const std::vector<Worker>& workers);
    ~Executing();
    Executing(const Executing&) = delete;
    Executing& operator=(const Executing&) = delete;
};

// Takes over signal SIGRTMAX - 3 where nobody has.
void tell_when_stopped();

}  // namespace ptxemu
