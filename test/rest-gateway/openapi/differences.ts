import { isJsonObject } from "../../../runtime/json/json-values.ts";

export type Difference = { readonly at: string; readonly theirs: unknown; readonly ours: unknown };

/** Returns the places where two JSON values differ, however their keys are ordered: `/paths//books/get/summary`. */
export function differences(theirs: unknown, ours: unknown, at = ""): Difference[] {
  if (Array.isArray(theirs) && Array.isArray(ours) && theirs.length === ours.length) {
    return theirs.flatMap((item, index) => differences(item, ours[index], `${at}/${index}`));
  }
  if (isJsonObject(theirs) && isJsonObject(ours)) {
    const keys = new Set([...Object.keys(theirs), ...Object.keys(ours)]);
    return [...keys].flatMap((key) => differences(theirs[key], ours[key], `${at}/${key}`));
  }
  return theirs === ours ? [] : [{ at, theirs, ours }];
}
