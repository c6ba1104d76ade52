import pg from "pg";
import { compareRanks, type OmittedObject, pgServiceOf } from "#plugins";
import { ApiError } from "#runtime";
import { listSchemaParts, type SchemaPart } from "./removable-parts.ts";
import { type BuiltSchema, buildSchemaInSteps, type OnUnfinished } from "./stepwise-build.ts";

/** Error texts of earlier builds, and the object that each led to. */
export type KnownBuildFaults = Map<string, string>;

type BuildAttempt = { readonly built: BuiltSchema } | { readonly error: Error; readonly parts: readonly SchemaPart[] };

type FaultyPart = Pick<SchemaPart, "object" | "fix" | "holder"> & { readonly error: Error };

/** How many parts named by an error are tried before the binary search over all. */
const MAX_SUSPECTS = 8;

/**
 * Builds the schema without the objects that make the build fail. The faulty object is one that the error names, if removing it changes
 * the error, else it is found by binary search over all parts.
 */
export async function buildServableSchema(
  preset: GraphileConfig.Preset,
  signal: AbortSignal,
  knownFaults: KnownBuildFaults = new Map(),
  onUnfinished?: OnUnfinished,
): Promise<BuiltSchema> {
  const attempt: TryBuild = (isRemoved) =>
    attemptBuild(preset, signal, isRemoved, isRemoved ? undefined : onUnfinished);
  const faulty = new Map<string, FaultyPart>();
  let last = await attempt(null);
  while ("error" in last) {
    const { error } = last;
    const isRemoved = (object: string) => faulty.has(object);
    const candidates = last.parts.filter(({ object }) => !isRemoved(object));
    const found = await findFaulty({ attempt, isRemoved, candidates, error, knownFaults });
    faulty.set(found.part.object, { ...found.part, error: found.error });
    knownFaults.set(errorTextOf(found.error), found.part.object);
    last = found.next;
  }
  const built = await restoreInnocentParts({ attempt, faulty, built: last.built });
  return { ...built, omitted: [...built.omitted, ...[...faulty.values()].map(toOmittedObject)] };
}

/** Null: nothing is removed. */
type IsRemoved = (object: string) => boolean;
type TryBuild = (isRemoved: IsRemoved | null) => Promise<BuildAttempt>;

type FaultSearch = {
  readonly attempt: TryBuild;
  /** True for the objects that were removed before. */
  readonly isRemoved: IsRemoved;
  readonly candidates: readonly SchemaPart[];
  readonly error: Error;
  readonly knownFaults: KnownBuildFaults;
};

/** `error`: the error that the part causes. `next`: the build without it. */
type FoundFault = { readonly part: SchemaPart; readonly error: Error; readonly next: BuildAttempt };

/** Finds the part whose removal changes or ends the error. */
async function findFaulty({ attempt, isRemoved, candidates, error, knownFaults }: FaultSearch): Promise<FoundFault> {
  for (const part of listSuspects(candidates, error, knownFaults)) {
    const next = await attempt((object) => isRemoved(object) || object === part.object);
    if (!("error" in next) || errorTextOf(next.error) !== errorTextOf(error)) return { part, error, next };
  }
  // The build succeeds with the first `buildable` parts, and fails with the first `unbuildable` parts.
  let buildable = -1;
  let unbuildable = candidates.length;
  let fault = error;
  while (unbuildable - buildable > 1) {
    const middle = Math.floor((buildable + unbuildable) / 2);
    const later = new Set(candidates.slice(middle).map(({ object }) => object));
    const next = await attempt((object) => isRemoved(object) || later.has(object));
    if ("error" in next) {
      unbuildable = middle;
      fault = next.error;
    } else buildable = middle;
  }
  const part = candidates[unbuildable - 1];
  if (!part) throw error;
  return { part, error: fault, next: await attempt((object) => isRemoved(object) || object === part.object) };
}

/** The parts that may cause the error: the one found for it before, then those that it names, the most dispensable kind first. */
function listSuspects(candidates: readonly SchemaPart[], error: Error, knownFaults: KnownBuildFaults): SchemaPart[] {
  const text = errorTextOf(error);
  const errorLetters = toPlainLetters(text);
  const before = candidates.filter(({ object }) => knownFaults.get(text) === object);
  const named = candidates
    .filter(({ kind }) => SUSPECT_KINDS.includes(kind))
    .map((part) => {
      const at = part.searchTerms.findIndex((word) => isMentioned(word, errorLetters));
      return { part, at, rank: [SUSPECT_KINDS.indexOf(part.kind), at, -(part.searchTerms[at]?.length ?? 0)] };
    })
    .filter(({ at }) => at >= 0)
    .sort((one, other) => compareRanks(one.rank, other.rank));
  return [...new Set([...before, ...named.slice(0, MAX_SUSPECTS).map(({ part }) => part)])];
}

/** The kinds that are tried first. Tables are not: an error often names the table of a faulty column, which the search finds. */
const SUSPECT_KINDS: readonly SchemaPart["kind"][] = ["comment", "function", "column"];

/** True if the error names the term, also in GraphQL's spelling: `order_lines` in `OrderLinesInput`. Short terms occur in many others. */
function isMentioned(term: string, errorLetters: string): boolean {
  const termLetters = toPlainLetters(term);
  return termLetters.length >= MIN_TERM_LENGTH && errorLetters.includes(termLetters);
}

const MIN_TERM_LENGTH = 3;

function toPlainLetters(text: string): string {
  return text.replace(/[^\p{L}\p{N}]+/gu, "").toLowerCase();
}

type CompletedBuild = {
  readonly attempt: TryBuild;
  readonly faulty: Map<string, FaultyPart>;
  readonly built: BuiltSchema;
};

/** Restores parts that were removed needlessly: the removal of one may only have changed the text of an error. */
async function restoreInnocentParts({ attempt, faulty, built }: CompletedBuild): Promise<BuiltSchema> {
  if (faulty.size < 2) return built;
  let best = built;
  for (const candidate of [...faulty.keys()]) {
    const next = await attempt((object) => object !== candidate && faulty.has(object));
    if ("error" in next) continue;
    faulty.delete(candidate);
    best = next.built;
  }
  return best;
}

/** Builds once. Throws errors that the schema does not cause. */
async function attemptBuild(
  preset: GraphileConfig.Preset,
  signal: AbortSignal,
  isRemoved: IsRemoved | null,
  onUnfinished: OnUnfinished | undefined,
): Promise<BuildAttempt> {
  const { plugin, parts } = makePartRemoval(isRemoved);
  try {
    return { built: await buildSchemaInSteps({ extends: [preset], plugins: [plugin] }, signal, onUnfinished) };
  } catch (error) {
    if (signal.aborted || isConnectionError(error)) throw error;
    onUnfinished?.(null);
    return { error: error as Error, parts: parts() };
  }
}

type PartRemoval = { readonly plugin: GraphileConfig.Plugin; readonly parts: () => readonly SchemaPart[] };

/** A plugin that removes parts from the introspection. Without a filter, parts are listed only when the build has failed. */
function makePartRemoval(isRemoved: IsRemoved | null): PartRemoval {
  let list = (): readonly SchemaPart[] => [];
  const plugin: GraphileConfig.Plugin = {
    name: "PartsPlugin",
    gather: {
      hooks: {
        pgIntrospection_introspection: {
          after: ["CallableFunctionsPlugin"],
          callback({ resolvedPreset }, { introspection, serviceName }) {
            const { schemas = ["public"] } = pgServiceOf(resolvedPreset, serviceName);
            list = () => listSchemaParts(introspection, schemas);
            if (!isRemoved) return;
            const parts = list();
            list = () => parts;
            for (const part of parts) if (isRemoved(part.object)) part.remove();
          },
        },
      },
    },
  };
  return { plugin, parts: () => list() };
}

/** True if the build may succeed when tried again. */
export function isConnectionError(error: unknown): boolean {
  if (error instanceof ApiError || error instanceof pg.DatabaseError) return true;
  return error instanceof Error && error.cause !== undefined && isConnectionError(error.cause);
}

/** The messages of an error, of its causes and of the errors that it aggregates, without colors. */
function errorTextOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const inner = error instanceof AggregateError ? error.errors : [];
  const texts = [
    error.message,
    ...inner.map(errorTextOf),
    ...(error.cause === undefined ? [] : [errorTextOf(error.cause)]),
  ];
  // biome-ignore lint/suspicious/noControlCharactersInRegex: ANSI color codes begin with it.
  return texts.join("\n").replace(/\u001b\[[\d;]*m/g, "");
}

function toOmittedObject({ object, fix, holder, error }: FaultyPart): OmittedObject {
  const [line = ""] = errorTextOf(error).split("\n");
  return { object, reason: `the schema cannot be built with it: ${line}`, fix, holder, isBuildFault: true };
}
