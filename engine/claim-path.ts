import { isJsonObject } from "./json-object.ts";

type Comparison = keyof typeof COMPARISONS;

/** The name of a member, the place in a list, or which text of a list. */
export type ClaimStep = string | number | { readonly comparison: Comparison; readonly text: string };
export type ClaimPath = readonly ClaimStep[];

const COMPARISONS = {
  "==": (found: string, text: string) => found === text,
  "!=": (found: string, text: string) => found !== text,
  "^==": (found: string, text: string) => found.startsWith(text),
  "==^": (found: string, text: string) => found.endsWith(text),
  "*==": (found: string, text: string) => found.includes(text),
} as const;

const STEP =
  /\.(?<word>[\w$@-]+)|\."(?<quoted>[^"]+)"|\["(?<key>[^"]+)"\]|\[(?<index>\d+)\]|\[\?\(?@ *(?<comparison>[\^*]?==|==\^|!=) *"(?<text>[^"]*)"\)?\]/gy;

/** `.app_metadata."user role"[0]`, `.roles[?(@ ^== "app_")]`, and with `$` in front as PostgREST 16 writes it. */
export function parseClaimPath(written: string): ClaimPath | null {
  const path = written.replace(/^\$/, "");
  const found = [...path.matchAll(STEP)];
  if (found.length === 0 || found.map(([whole]) => whole).join("") !== path) return null;
  const steps = found.map(({ groups }) => toStep(groups!));
  const isChoice = (step: ClaimStep) => typeof step === "object";
  return steps.slice(0, -1).some(isChoice) ? null : steps;
}

function toStep({
  word,
  quoted,
  key,
  index,
  comparison,
  text,
}: Readonly<Record<string, string | undefined>>): ClaimStep {
  if (comparison !== undefined) return { comparison: comparison as Comparison, text: text! };
  return index === undefined ? (word ?? quoted ?? key)! : Number(index);
}

/** Undefined where the claims have no such place. */
export function claimAt(claims: unknown, path: ClaimPath): unknown {
  return path.reduce(follow, claims);
}

function follow(value: unknown, step: ClaimStep): unknown {
  if (typeof step === "string") return isJsonObject(value) ? value[step] : undefined;
  if (!Array.isArray(value)) return undefined;
  if (typeof step === "number") return value[step];
  const isMeant = COMPARISONS[step.comparison];
  return value.find((found) => typeof found === "string" && isMeant(found, step.text));
}

/** The claims with that text at that place, and whatever leads to it. */
export function withClaimAt(claims: object, path: ClaimPath, text: string): object {
  return withValueAt(claims, path, text) as object;
}

function withValueAt(value: unknown, [step, ...further]: ClaimPath, text: string): unknown {
  if (step === undefined) return text;
  if (typeof step !== "string") {
    const list: unknown[] = Array.isArray(value) ? [...value] : [];
    const place = typeof step === "number" ? step : list.length;
    list[place] = withValueAt(list[place], further, text);
    return list;
  }
  const members = isJsonObject(value) ? value : {};
  return { ...members, [step]: withValueAt(members[step], further, text) };
}
