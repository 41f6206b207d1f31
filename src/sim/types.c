#include "sim/types.h"
