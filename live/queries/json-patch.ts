import { escapePointer, isExactJsonObject, type JsonObject } from "#runtime/json";

/** An operation of a JSON Patch (RFC 6902). */
export type PatchOperation =
  | { readonly op: "add" | "replace"; readonly path: string; readonly value: unknown }
  | { readonly op: "remove"; readonly path: string };

/** Above this number of comparisons, elements of two arrays are only compared at equal places. */
const MAX_COMPARISONS = 250_000;

/** The operations that make the second value of the first, in their order; none if they are equal. */
export function makeJsonPatch(before: unknown, after: unknown): PatchOperation[] {
  const operations: PatchOperation[] = [];
  compareValues(before, after, "", operations);
  return operations;
}

function compareValues(before: unknown, after: unknown, path: string, operations: PatchOperation[]): void {
  if (before === after) return;
  if (Array.isArray(before) && Array.isArray(after)) compareArrays(before, after, path, operations);
  else if (isExactJsonObject(before) && isExactJsonObject(after)) compareObjects(before, after, path, operations);
  else if (JSON.stringify(before) !== JSON.stringify(after)) operations.push({ op: "replace", path, value: after });
}

function compareObjects(before: JsonObject, after: JsonObject, path: string, operations: PatchOperation[]): void {
  for (const name of Object.keys(before))
    if (!Object.hasOwn(after, name)) operations.push({ op: "remove", path: `${path}/${escapePointer(name)}` });
  for (const [name, value] of Object.entries(after)) {
    const at = `${path}/${escapePointer(name)}`;
    if (Object.hasOwn(before, name)) compareValues(before[name], value, at, operations);
    else operations.push({ op: "add", path: at, value });
  }
}

/** Elements that both arrays have in the same order stay; between them, elements are changed, removed and added. */
function compareArrays(
  before: readonly unknown[],
  after: readonly unknown[],
  path: string,
  operations: PatchOperation[],
): void {
  const [oldTexts, newTexts] = [before.map(toText), after.map(toText)];
  const kept = commonElements(oldTexts, newTexts);
  let [from, to] = [0, 0];
  for (const [oldEnd, newEnd] of [...kept, [before.length, after.length] as const]) {
    changeElements(before.slice(from, oldEnd), after.slice(to, newEnd), { path, start: to }, operations);
    from = oldEnd + 1;
    to = newEnd + 1;
  }
}

/** `start` is the place of the first element, in the array as the operations before have left it. */
function changeElements(
  before: readonly unknown[],
  after: readonly unknown[],
  { path, start }: { readonly path: string; readonly start: number },
  operations: PatchOperation[],
): void {
  const both = Math.min(before.length, after.length);
  for (let at = 0; at < both; at++) compareValues(before[at], after[at], `${path}/${start + at}`, operations);
  for (let at = before.length - 1; at >= both; at--) operations.push({ op: "remove", path: `${path}/${start + at}` });
  for (let at = both; at < after.length; at++)
    operations.push({ op: "add", path: `${path}/${start + at}`, value: after[at] });
}

function toText(value: unknown): string {
  return JSON.stringify(value);
}

type Places = readonly [before: number, after: number];

/** A longest common subsequence, by the places of its elements. */
function commonElements(before: readonly string[], after: readonly string[]): Places[] {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start++;
  let end = 0;
  while (end < shorter - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const head = Array.from({ length: start }, (_, at): Places => [at, at]);
  const tail = Array.from({ length: end }, (_, at): Places => [before.length - end + at, after.length - end + at]);
  const middle = commonInMiddle(before.slice(start, before.length - end), after.slice(start, after.length - end));
  return [...head, ...middle.map(([from, to]): Places => [from + start, to + start]), ...tail];
}

function commonInMiddle(before: readonly string[], after: readonly string[]): Places[] {
  const width = after.length + 1;
  if (before.length * after.length > MAX_COMPARISONS) return commonAtEqualPlaces(before, after);
  const lengths = new Uint32Array((before.length + 1) * width);
  for (let from = before.length - 1; from >= 0; from--) {
    for (let to = after.length - 1; to >= 0; to--) {
      const next = from * width + to;
      lengths[next] =
        before[from] === after[to]
          ? lengths[next + width + 1]! + 1
          : Math.max(lengths[next + width]!, lengths[next + 1]!);
    }
  }
  const common: Places[] = [];
  for (let from = 0, to = 0; from < before.length && to < after.length; ) {
    const next = from * width + to;
    if (before[from] === after[to]) common.push([from++, to++]);
    else if (lengths[next + width]! >= lengths[next + 1]!) from++;
    else to++;
  }
  return common;
}

function commonAtEqualPlaces(before: readonly string[], after: readonly string[]): Places[] {
  return before.flatMap((text, at): Places[] => (text === after[at] ? [[at, at]] : []));
}
