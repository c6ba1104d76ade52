// Deno's std/uuid/v4.ts.

import { v4 } from "./uuid.ts";

export const { generate, validate } = v4;
