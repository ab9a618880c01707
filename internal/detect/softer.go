package detect

import ()
