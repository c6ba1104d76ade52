import { integer, oneOf, optional, type SettingDefinition, text, withDefault } from "./setting-readers.ts";

export const FUNCTION_SETTINGS = {
  functions: optional(
    "FUNCTIONS",
    oneOf("on", "off"),
    "Whether this gateway runs [functions](functions.md) at `/functions/v1`. Unset: if there is a folder of them.",
  ),
  functionsDir: optional(
    "FUNCTIONS_DIR",
    text,
    "Folder of the functions. Unset: `functions`, or `supabase/functions`, of the working directory.",
  ),
  functionsMemory: withDefault(
    "FUNCTIONS_MEMORY",
    integer(32, 16_384),
    "256",
    "Megabytes that a function may take in one process. Beyond it the function is ended, and the response is 546.",
  ),
  functionsTimeout: withDefault(
    "FUNCTIONS_TIMEOUT_SECONDS",
    integer(1, 86_400),
    "150",
    "Seconds until a function must begin its response, and send each further piece of it; then the response is 504.",
  ),
  functionsCpu: withDefault(
    "FUNCTIONS_CPU_SECONDS",
    integer(1, 86_400),
    "2",
    "Seconds of processor time that a function may compute without a pause. Beyond it the function is ended, and the response is 546.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;
