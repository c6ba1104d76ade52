import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");

/** So that what is measured afterwards is in use: how long garbage lies about is for V8 to choose. */
export const collectGarbage: () => void = runInNewContext("gc");
