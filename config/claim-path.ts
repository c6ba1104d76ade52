import { isJsonObject } from "#runtime/json";

type ClaimComparison = keyof typeof COMPARISONS;

type ClaimCondition = { readonly comparison: ClaimComparison; readonly text: string };
/** A part of a string, with positions like those of `String.slice`. */
type Slice = { readonly start: number; readonly end: number | undefined };

/** A step of a claim path: the name of a member, an array index, a condition on strings of an array, or a part of a string. */
type ClaimStep = string | number | ClaimCondition | Slice;
export type ClaimPath = readonly ClaimStep[];

const COMPARISONS = {
  "==": (found: string, text: string) => found === text,
  "!=": (found: string, text: string) => found !== text,
  "^==": (found: string, text: string) => found.startsWith(text),
  "==^": (found: string, text: string) => found.endsWith(text),
  "*==": (found: string, text: string) => found.includes(text),
  search: (found: string, text: string) => new RegExp(text, "u").test(found),
  match: (found: string, text: string) => new RegExp(`^(?:${text})$`, "u").test(found),
} as const;

/** A string in double quotes, or in single quotes (RFC 9535), with JSON escapes. */
const QUOTED_TEXT = String.raw`(?<quote>["'])(?<text>(?:(?!\k<quote>)[^\\]|\\.)*)\k<quote>`;
const COMPARISON = String.raw`@ *(?<operator>[\^*]?==|==\^|!=) *`;
const FUNCTION_CALL = String.raw`(?<called>search|match)\( *@ *, *`;
const PATH_STEP = new RegExp(
  [
    String.raw`\.(?<word>[\w$@-]+)`,
    String.raw`\."(?<quoted>[^"]+)"`,
    String.raw`\["(?<key>[^"]+)"\]`,
    String.raw`\['(?<singleQuoted>[^']+)'\]`,
    String.raw`\[(?<index>\d+)\]`,
    String.raw`\[(?<start>-?\d+)?(?<colon>:)(?<end>-?\d+)?\]`,
    String.raw`\[\? *\(? *(?:${COMPARISON}|${FUNCTION_CALL})${QUOTED_TEXT} *\)? *\)? *\]`,
  ].join("|"),
  "gy",
);

/**
 * Parses `.app_metadata."user role"[0]`, `.roles[?(@ ^== "app_")]`, without the first four characters `.roles[0][4:]`, and
 * the syntax of PostgREST 16 (RFC 9535): `$["user role"]`, `$.roles[?search(@, "^app_")]`.
 */
export function parseClaimPath(written: string): ClaimPath | null {
  const path = written.replace(/^\$/, "");
  const found = [...path.matchAll(PATH_STEP)];
  if (found.length === 0 || found.map(([whole]) => whole).join("") !== path) return null;
  const steps = found.map(({ groups }) => toClaimStep(groups!));
  if (!steps.every(isValidStep)) return null;
  return steps.every((step, index) => mayFollow(step, steps[index - 1])) ? steps : null;
}

/** A condition and a slice select a string, so only a slice of it may follow a condition. */
function mayFollow(step: ClaimStep, before: ClaimStep | undefined): boolean {
  if (typeof before !== "object") return true;
  return "comparison" in before && typeof step === "object" && "start" in step;
}

function toClaimStep(groups: Readonly<Record<string, string | undefined>>): ClaimStep {
  const { word, quoted, key, singleQuoted, index, operator, called, text, colon, start, end } = groups;
  if (colon !== undefined) return { start: Number(start ?? 0), end: end === undefined ? undefined : Number(end) };
  const comparison = (operator ?? called) as ClaimComparison | undefined;
  if (comparison !== undefined) return { comparison, text: text!.replace(/\\(["'\\/])/g, "$1") };
  return index === undefined ? (word ?? quoted ?? key ?? singleQuoted)! : Number(index);
}

/** An invalid pattern is an error in the setting. */
function isValidStep(step: ClaimStep): boolean {
  if (typeof step !== "object" || !("comparison" in step)) return true;
  try {
    COMPARISONS[step.comparison]("", step.text);
    return true;
  } catch {
    return false;
  }
}

/** Returns undefined if the claims have no value at the path. */
export function claimAt(claims: unknown, path: ClaimPath): unknown {
  return path.reduce(followStep, claims);
}

function followStep(value: unknown, step: ClaimStep): unknown {
  if (typeof step === "string") return isJsonObject(value) ? value[step] : undefined;
  if (typeof step === "object" && "start" in step) return sliceOf(value, step);
  if (!Array.isArray(value)) return undefined;
  if (typeof step === "number") return value[step];
  const isMeant = COMPARISONS[step.comparison];
  return value.find((found) => typeof found === "string" && isMeant(found, step.text));
}

function sliceOf(value: unknown, { start, end }: Slice): string | undefined {
  return typeof value === "string" ? value.slice(start, end) : undefined;
}

/** Returns claims with that value at the path, including all parents. */
export function withClaimAt(claims: object, path: ClaimPath, text: string): object {
  return withValueAt(claims, path, text) as object;
}

function withValueAt(value: unknown, [step, ...further]: ClaimPath, text: string): unknown {
  if (step === undefined) return text;
  if (typeof step === "object" && "start" in step) return surroundingOf(text, step);
  if (typeof step !== "string") {
    const list: unknown[] = Array.isArray(value) ? [...value] : [];
    const place = typeof step === "number" ? step : list.length;
    list[place] = withValueAt(list[place], further, text);
    return list;
  }
  const members = isJsonObject(value) ? value : {};
  return { ...members, [step]: withValueAt(members[step], further, text) };
}

/** Returns a string that has the text at that slice. */
function surroundingOf(text: string, { start, end = 0 }: Slice): string {
  return `${"_".repeat(Math.max(start, 0))}${text}${"_".repeat(Math.max(-end, 0))}`;
}
