import {
  type Catalog,
  type CatalogTable,
  mayCallRoutine,
  mayNameTable,
  type QualifiedName,
  type Routine,
} from "#catalog";
import { ApiError, editDistance } from "#runtime";
import type { CallArgument, CallIntent } from "../intent/intent.ts";

const MIN_SIMILARITY = 0.75;

/** Throws PGRST205 if the table does not exist or is not served. */
export function findTable(name: QualifiedName, catalog: Catalog, role: string): CatalogTable {
  const table = catalog.findTable(name);
  if (!table || !isServed(table, catalog)) throw tableNotFound(name, catalog, role);
  return table;
}

/** Partitions are served as part of their table. */
function isServed({ schema, isPartition }: CatalogTable, catalog: Catalog): boolean {
  return !isPartition && catalog.schemas.get(schema)?.exposed === true;
}

function tableNotFound({ schema, name }: QualifiedName, catalog: Catalog, role: string): ApiError {
  const tables = catalog.schemas.get(schema)?.tables ?? new Map<string, CatalogTable>();
  const mayName = (known: string) =>
    isServed(tables.get(known)!, catalog) && mayNameTable(catalog, role, tables.get(known)!);
  const suggestion = suggestName(name, [...tables.keys()], { minSimilarity: MIN_SIMILARITY, mayName });
  return new ApiError("notFound", "PGRST205", `Could not find the table '${schema}.${name}' in the schema cache`, {
    hint: suggestion && `Perhaps you meant the table '${schema}.${suggestion}'`,
  });
}

/** The types of a single unnamed parameter that takes a body of this kind unchanged. */
const UNNAMED_PARAMETER_TYPES: Readonly<Record<"json" | "text" | "xml" | "bytea", readonly string[]>> = {
  json: ["json", "jsonb"],
  text: ["text"],
  xml: ["xml"],
  bytea: ["bytea"],
};
const ALL_UNNAMED_PARAMETER_TYPES = Object.values(UNNAMED_PARAMETER_TYPES).flat();

const MIN_NAME_SIMILARITY = 0.75;
const MIN_PARAMETER_SIMILARITY = 0.33;

/** Finds the function by its name and argument names. Throws PGRST202 if there is none, and PGRST203 (status 300) if several match. */
export function findRoutine({ target, argument }: CallIntent, catalog: Catalog, role: string): Routine {
  const all = catalog.schemas.get(target.schema)?.routines.get(target.name) ?? [];
  const overloads = all.filter(isCallable);
  const named = overloads.filter((routine) => acceptsNamedArguments(routine, argument));
  const found = named.length > 0 ? named : overloads.filter((routine) => acceptsWholeBody(routine, argument));
  // Postgres refuses a function that the caller may not call, and its parameters are not disclosed.
  const callable = found.length > 1 ? found.filter((routine) => mayCallRoutine(catalog, role, routine)) : found;
  if (callable.length > 1) throw ambiguousRoutine(callable.toSorted(compareRoutines));
  const routine = callable[0] ?? found[0];
  if (!routine) throw routineNotFound({ target, argument, overloads }, catalog, role);
  return routine;
}

/** Finds the function of that name whose first parameter is a row of the table. */
export function findRowRoutine({ target, argument }: CallIntent, of: QualifiedName, catalog: Catalog): Routine {
  const overloads = (catalog.findTable(of)?.rowRoutines ?? []).filter(
    ({ schema, name }) => schema === target.schema && name === target.name,
  );
  const found = overloads.find((routine) => acceptsNamedArguments(withoutRowArgument(routine), argument));
  if (!found) throw routineNotFound({ target, argument, overloads: [] }, catalog, "");
  return found;
}

export function withoutRowArgument(routine: Routine): Routine {
  return { ...routine, arguments: routine.arguments.slice(1) };
}

/** PostgREST's order: fewest parameters first, then by comment, then by parameters. */
function compareRoutines(a: Routine, b: Routine): number {
  return (
    a.arguments.length - b.arguments.length ||
    compareText(a.comment ?? "", b.comment ?? "") ||
    compareText(JSON.stringify(parameterSignature(a)), JSON.stringify(parameterSignature(b)))
  );
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export function argumentNames(argument: CallArgument): readonly string[] {
  switch (argument.kind) {
    case "query":
      return [...new Set(argument.values.map(([name]) => name))];
    case "json":
      return argument.names ?? [];
    case "raw":
      return [];
  }
}

/** `[["a", "integer"], ["b", "text"]]` */
function parameterSignature(routine: Routine): string[][] {
  return routine.arguments.map(({ name, type }) => [name ?? "", type.sqlName]);
}

/** Arguments are passed by name; only a request body can be an unnamed argument. */
export function isCallable(routine: Routine): boolean {
  const unnamed = routine.arguments.filter(({ name }) => name === null);
  if (routine.kind !== "function" || unnamed.length > 1) return false;
  return unnamed.every(({ type }) => ALL_UNNAMED_PARAMETER_TYPES.includes(type.sqlName));
}

/** True if the function has parameters for all passed arguments, and all its required parameters are passed. */
function acceptsNamedArguments(routine: Routine, argument: CallArgument): boolean {
  const parameters = routine.arguments;
  const passed = argumentNames(argument);
  if (parameters.length === 0) return passed.length === 0 && argument.kind !== "raw";
  const known = new Set(parameters.map(({ name }) => name));
  return (
    passed.every((name) => known.has(name)) &&
    parameters.every(({ name, required }) => !required || (name !== null && passed.includes(name)))
  );
}

/** True if the function takes the whole body as its single unnamed parameter. */
export function acceptsWholeBody({ arguments: [first, ...others] }: Routine, argument: CallArgument): boolean {
  if (argument.kind === "query" || !first || others.length > 0 || first.name !== null) return false;
  if (argument.kind === "json" && argument.isCsv) return false;
  return (
    isUnnamedArgument(argument) ||
    UNNAMED_PARAMETER_TYPES[argument.kind === "json" ? "json" : argument.type].includes(first.type.sqlName)
  );
}

/** `{"": "x"}`: clients' notation for an unnamed parameter, of any type. */
function isUnnamedArgument(argument: CallArgument): boolean {
  return argument.kind === "json" && argument.names?.length === 1 && argument.names[0] === "";
}

/** True if the JSON text is an object, judged by its first character; Postgres reads the rest. */
export function isObjectText(json: Buffer): boolean {
  const first = json.find((byte) => byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d);
  return first === 0x7b;
}

function ambiguousRoutine(found: readonly Routine[]): ApiError {
  const signatures = found.map((routine) => {
    const parameters = parameterSignature(routine).map(([name, type]) => `${name} => ${type}`);
    return `${routine.schema}.${routine.name}(${parameters.join(", ")})`;
  });
  return new ApiError(
    "ambiguous",
    "PGRST203",
    `Could not choose the best candidate function between: ${signatures.join(", ")}`,
    {
      hint:
        "Try renaming the parameters or the function itself in the database " +
        "so function overloading can be resolved",
    },
  );
}

type RoutineSearch = {
  readonly target: CallIntent["target"];
  readonly argument: CallArgument;
  /** The functions of this name. */
  readonly overloads: readonly Routine[];
};

export function routineNotFound(search: RoutineSearch, catalog: Catalog, role: string): ApiError {
  const { target, argument } = search;
  const names = argumentNames(argument).toSorted();
  const qualifiedName = `${target.schema}.${target.name}`;
  if (argument.kind === "raw") {
    return new ApiError("notFound", "PGRST202", `Could not find the function ${qualifiedName} in the schema cache`, {
      details: searchDetails(`${qualifiedName} with a single unnamed ${argument.type} parameter`),
    });
  }
  const signature = names.length === 0 ? " without parameters" : `(${names.join(", ")})`;
  const parameters =
    names.length === 0 ? " without parameters" : ` with parameter${names.length > 1 ? "s" : ""} ${names.join(", ")}`;
  const orWhole = argument.kind === "json" && !argument.isCsv ? " or with a single unnamed json/jsonb parameter" : "";
  return new ApiError(
    "notFound",
    "PGRST202",
    `Could not find the function ${qualifiedName}${signature} in the schema cache`,
    {
      details: searchDetails(qualifiedName + parameters + orWhole),
      hint: routineHint(search, names, catalog, role),
    },
  );
}

function searchDetails(signature: string): string {
  return `Searched for the function ${signature}, but no matches were found in the schema cache.`;
}

function routineHint(
  { target: { schema, name }, overloads }: RoutineSearch,
  names: readonly string[],
  catalog: Catalog,
  role: string,
): string | null {
  const visible = overloads.filter((routine) => mayCallRoutine(catalog, role, routine));
  if (visible.length > 0) {
    const signatures = visible.map((routine) =>
      parameterList(routine.arguments.map((parameter) => parameter.name ?? "")),
    );
    const suggestion = suggestName(parameterList(names), signatures, {
      minSimilarity: MIN_PARAMETER_SIMILARITY,
      mayName: () => true,
    });
    return suggestion && `Perhaps you meant to call the function ${schema}.${name}${suggestion}`;
  }
  const routines = catalog.schemas.get(schema)?.routines ?? new Map<string, readonly Routine[]>();
  const mayName = (known: string) =>
    routines.get(known)!.some((routine) => isCallable(routine) && mayCallRoutine(catalog, role, routine));
  const suggestion = suggestName(name, [...routines.keys()], { minSimilarity: MIN_NAME_SIMILARITY, mayName });
  return suggestion && `Perhaps you meant to call the function ${schema}.${suggestion}`;
}

/** `(a, b)` */
function parameterList(parameters: readonly string[]): string {
  return `(${parameters.toSorted().join(", ")})`;
}

const MIN_PIECE_LENGTH = 2;
const MAX_PIECE_LENGTH = 3;
const MAX_RANKED = 50;
/** Comparing with more names would make the error too slow. */
const MAX_CANDIDATES = 500;
/** The length of a name, or of a list of parameters, that is compared: longer ones are no misspelling. */
const MAX_COMPARED_LENGTH = 1_000;

type SuggestionRules = {
  /** The minimum similarity, from 0 to 1. */
  readonly minSimilarity: number;
  /** True if the error may disclose the name to the caller. */
  readonly mayName: (known: string) => boolean;
};

/**
 * The most similar known name, as computed by PostgREST's library fuzzyset: among names that share trigrams, or else
 * bigrams, the one with the least edit distance.
 */
export function suggestName(
  name: string,
  candidates: readonly string[],
  { minSimilarity: least, mayName }: SuggestionRules,
): string | null {
  if (candidates.length > MAX_CANDIDATES || name.length > MAX_COMPARED_LENGTH) return null;
  const wanted = name.toLowerCase();
  const exact = candidates.find((candidate) => candidate.toLowerCase() === wanted && mayName(candidate));
  if (exact !== undefined) return exact;
  for (let size = MAX_PIECE_LENGTH; size >= MIN_PIECE_LENGTH; size--) {
    const pieces = countPieces(wanted, size);
    const best = candidates
      .map((candidate) => ({ candidate, shared: cosineSimilarity(pieces, countPieces(candidate.toLowerCase(), size)) }))
      .filter(({ shared }) => shared > 0)
      .sort((a, b) => b.shared - a.shared)
      .slice(0, MAX_RANKED)
      .map(({ candidate }) => ({ candidate, score: editSimilarity(wanted, candidate.toLowerCase()) }))
      .sort((a, b) => b.score - a.score)
      .find((found) => found.score >= least && mayName(found.candidate));
    if (best) return best.candidate;
  }
  return null;
}

function countPieces(text: string, size: number): Map<string, number> {
  const enclosed = `-${text.replace(/[^\p{L}\p{N} ,]/gu, "")}-`;
  const counts = new Map<string, number>();
  for (let at = 0; at + size <= enclosed.length; at++) {
    const piece = enclosed.slice(at, at + size);
    counts.set(piece, (counts.get(piece) ?? 0) + 1);
  }
  return counts;
}

/** The cosine similarity of two gram counts. */
function cosineSimilarity(a: Map<string, number>, b: Map<string, number>): number {
  let product = 0;
  for (const [piece, count] of a) product += count * (b.get(piece) ?? 0);
  return product / (vectorLength(a) * vectorLength(b));
}

function vectorLength(counts: Map<string, number>): number {
  return Math.sqrt([...counts.values()].reduce((sum, count) => sum + count * count, 0));
}

function editSimilarity(a: string, b: string): number {
  return 1 - editDistance(a, b, { swaps: false }) / Math.max(a.length, b.length);
}
