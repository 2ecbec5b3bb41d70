#include "protocol.hpp"
