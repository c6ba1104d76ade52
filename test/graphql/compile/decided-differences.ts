import { isJsonObject } from "../../../runtime/json/json-values.ts";

type ErrorEntry = {
  readonly message: string;
  readonly path?: Path;
  readonly extensions?: { readonly code: string };
};
type Path = readonly (string | number)[];
type ParsedAnswer = { readonly data: unknown; readonly errors: unknown };

/** Codes of errors that come before rows are read. */
const REFUSALS: ReadonlySet<unknown> = new Set(["VALIDATION_ERROR", "AUTH_REQUIRED", "PERMISSION_DENIED"]);

/**
 * Grafast's answer with the differences of compiled operations that docs/graphql.md describes, where the compiled answer has them:
 * - Grafast reads equal calls of a function by one statement, so a field fails if another one with an equal call has a part that fails.
 * - A field that is refused for several causes, or is refused and would fail, has the error of one; in Grafast another one, or several.
 * - A refused argument of related rows fails another field around it than in Grafast.
 * - Only one of the two has the error of a refused part if the row that it is for does not exist.
 */
export function withDecidedDifferences(byGrafast: ParsedAnswer, compiled: ParsedAnswer): ParsedAnswer {
  const own = errorsOf(compiled);
  const ownData = compiled.data;
  const data = structuredClone(byGrafast.data);
  const isOwn = (error: ErrorEntry) => own.some((other) => isSame(other, error));
  const errors = errorsOf(byGrafast).flatMap((error): ErrorEntry[] => {
    const { path = [] } = error;
    if (isOwn(error)) return [error];
    const samePlace = own.find((other) => String(other.path) === String(path));
    if (samePlace && (isRefused(samePlace) || isRefused(error))) return [samePlace];
    const around = own.find((other) => isRefusedAround(other, error));
    if (around) {
      clear(data, around.path!, ownData);
      return [around];
    }
    if (isRefused(error) && isMissing(data, path) && isMissing(ownData, path)) return [];
    if (own.some((other) => isOfEqualCall(other, error)) && isJsonObject(data) && isJsonObject(ownData)) {
      (data as Record<string, unknown>)[path[0]!] = ownData[path[0]!];
      return [];
    }
    return [error];
  });
  const ofMissingRows = own.filter((error) => isRefused(error) && isMissing(byGrafast.data, error.path ?? []));
  const known = own.flatMap((error) => [...errors, ...ofMissingRows].find((other) => isSame(other, error)) ?? []);
  const others = errors.filter((error) => !isOwn(error));
  const all = [...known, ...others];
  return { data, errors: all.length > 0 ? all : undefined };
}

function errorsOf({ errors }: ParsedAnswer): readonly ErrorEntry[] {
  return (errors ?? []) as readonly ErrorEntry[];
}

function isSame(one: ErrorEntry, other: ErrorEntry): boolean {
  return one.message === other.message && String(one.path) === String(other.path);
}

function isRefused({ extensions }: ErrorEntry): boolean {
  return REFUSALS.has(extensions?.code);
}

function isRefusedArgument({ extensions }: ErrorEntry): boolean {
  return extensions?.code === "VALIDATION_ERROR";
}

function isRefusedAround(own: ErrorEntry, error: ErrorEntry): boolean {
  if (!isRefusedArgument(error) || own.message !== error.message) return false;
  const { path: outer = [] } = own;
  const { path: inner = [] } = error;
  return outer.length < inner.length && outer.every((key, index) => key === inner[index]);
}

/** True if both are errors of fields of the operation, which have the name of the field after a prefix. */
function isOfEqualCall(own: ErrorEntry, error: ErrorEntry): boolean {
  const nameOf = ({ path = [] }: ErrorEntry) => path.length === 1 && String(path[0]).replace(/^a\d+/, "");
  return own.message === error.message && nameOf(own) !== false && nameOf(own) === nameOf(error);
}

/** Sets the value at the path to null: the first around it that is null in the other data too. */
function clear(data: unknown, path: Path, other: unknown): void {
  const depth = path.findIndex((_, index) => valueAt(other, path.slice(0, index + 1)) === null);
  const parent = valueAt(data, path.slice(0, depth));
  if (depth >= 0 && typeof parent === "object" && parent !== null) {
    (parent as Record<string | number, unknown>)[path[depth]!] = null;
  }
}

/** True if the value itself is null, not one around it. If another field made all data null, every row may be missing. */
function isMissing(data: unknown, path: Path): boolean {
  return data === null || (valueAt(data, path) === null && valueAt(data, path.slice(0, -1)) !== null);
}

/** Null within null. */
function valueAt(data: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, key) => (value as Record<string | number, unknown> | null)?.[key] ?? null, data);
}
