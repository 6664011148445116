// What most files include: the build reads it once, instead of once per file. No file needs it.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "access.hpp"
#include "checks.hpp"
#include "lane.hpp"
#include "machine.hpp"
#include "operations.hpp"
#include "runtime.hpp"
#include "streams.hpp"
