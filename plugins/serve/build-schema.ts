import pg from "pg";
import { ApiError } from "../../engine/errors.ts";
import type { LeftOut } from "../left-out.ts";
import { type Part, partsOf } from "../parts.ts";
import { type BuiltSchema, makeSchemaInTurns } from "./make-schema.ts";

/** What errors of earlier builds came from: a text of an error, and the object that was left out then. */
export type KnownFaults = Map<string, string>;

type Attempt = { readonly built: BuiltSchema } | { readonly error: Error; readonly parts: readonly Part[] };

type Faulty = Pick<Part, "object" | "fix"> & { readonly error: Error };

/** Of the parts that an error names so many are tried before it is searched for among all. */
const MOST_SUSPECTS = 8;

/**
 * Builds the schema of all that it can be built of. An object that it cannot be built with is left out, alone: the one that the
 * error names, if the schema can be built without it, else the one that is found by halving what the schema is made of.
 */
export async function buildSchema(
  preset: GraphileConfig.Preset,
  signal: AbortSignal,
  known: KnownFaults = new Map(),
): Promise<BuiltSchema> {
  const attempt: Try = (isOut) => attemptBuild(preset, signal, isOut);
  const faulty = new Map<string, Faulty>();
  let last = await attempt(null);
  while ("error" in last) {
    const { error } = last;
    const isOut = (object: string) => faulty.has(object);
    const candidates = last.parts.filter(({ object }) => !isOut(object));
    const found = await findFaulty({ attempt, isOut, candidates, error, known });
    faulty.set(found.part.object, { ...found.part, error: found.error });
    known.set(textOf(found.error), found.part.object);
    last = found.next;
  }
  const built = await putBack({ attempt, faulty, built: last.built });
  return { ...built, leftOut: [...built.leftOut, ...[...faulty.values()].map(toLeftOut)] };
}

/** Null: nothing is left out. */
type IsOut = (object: string) => boolean;
type Try = (isOut: IsOut | null) => Promise<Attempt>;

type Search = {
  readonly attempt: Try;
  /** Left out already. */
  readonly isOut: IsOut;
  readonly candidates: readonly Part[];
  readonly error: Error;
  readonly known: KnownFaults;
};

/** `error`: what it is at fault for. `next`: what comes of leaving it out. */
type Found = { readonly part: Part; readonly error: Error; readonly next: Attempt };

/** The part without which there is another error, or none; and what came of trying. */
async function findFaulty({ attempt, isOut, candidates, error, known }: Search): Promise<Found> {
  for (const part of suspects(candidates, error, known)) {
    const next = await attempt((object) => isOut(object) || object === part.object);
    if (!("error" in next) || textOf(next.error) !== textOf(error)) return { part, error, next };
  }
  // It can be built of the first `fine` of them, and cannot of the first `many`.
  let fine = -1;
  let many = candidates.length;
  let fault = error;
  while (many - fine > 1) {
    const middle = Math.floor((fine + many) / 2);
    const later = new Set(candidates.slice(middle).map(({ object }) => object));
    const next = await attempt((object) => isOut(object) || later.has(object));
    if ("error" in next) {
      many = middle;
      fault = next.error;
    } else fine = middle;
  }
  const part = candidates[many - 1];
  if (!part) throw error;
  return { part, error: fault, next: await attempt((object) => isOut(object) || object === part.object) };
}

/** What the error may mean: what it meant the last time, then what it names, and of that what is missed least. */
function suspects(candidates: readonly Part[], error: Error, known: KnownFaults): Part[] {
  const text = textOf(error);
  const said = bare(text);
  const before = candidates.filter(({ object }) => known.get(text) === object);
  const named = candidates
    .filter(({ kind }) => KINDS.includes(kind))
    .map((part) => {
      const at = part.words.findIndex((word) => isNamed(word, said));
      return { part, at, rank: [KINDS.indexOf(part.kind), at, -(part.words[at]?.length ?? 0)] };
    })
    .filter(({ at }) => at >= 0)
    .sort((one, other) => compare(one.rank, other.rank));
  return [...new Set([...before, ...named.slice(0, MOST_SUSPECTS).map(({ part }) => part)])];
}

/** A table is often named for one of its columns, which the search finds. */
const KINDS: readonly Part["kind"][] = ["comment", "function", "column"];

function compare(one: readonly number[], other: readonly number[]): number {
  const at = one.findIndex((part, index) => part !== other[index]);
  return at < 0 ? 0 : one[at]! - other[at]!;
}

/** Also as GraphQL would spell it: `order_lines` in `OrderLinesInput`. Short words are in many others. */
function isNamed(word: string, said: string): boolean {
  const wanted = bare(word);
  return wanted.length >= SHORTEST_WORD && said.includes(wanted);
}

const SHORTEST_WORD = 3;

function bare(text: string): string {
  return text.replace(/[^\p{L}\p{N}]+/gu, "").toLowerCase();
}

type Done = { readonly attempt: Try; readonly faulty: Map<string, Faulty>; readonly built: BuiltSchema };

/** Of several that were left out one may be innocent: its absence may have changed nothing but the words of an error. */
async function putBack({ attempt, faulty, built }: Done): Promise<BuiltSchema> {
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

/** One build. Throws what has nothing to do with the schema. */
async function attemptBuild(preset: GraphileConfig.Preset, signal: AbortSignal, isOut: IsOut | null): Promise<Attempt> {
  const { plugin, parts } = partsPlugin(isOut);
  try {
    return { built: await makeSchemaInTurns({ extends: [preset], plugins: [plugin] }, signal) };
  } catch (error) {
    if (signal.aborted || isOfConnection(error)) throw error;
    return { error: error as Error, parts: parts() };
  }
}

type PartsPlugin = { readonly plugin: GraphileConfig.Plugin; readonly parts: () => readonly Part[] };

/** Parts are listed when something goes wrong. */
function partsPlugin(isOut: IsOut | null): PartsPlugin {
  let list = (): readonly Part[] => [];
  const plugin: GraphileConfig.Plugin = {
    name: "PartsPlugin",
    gather: {
      hooks: {
        pgIntrospection_introspection: {
          after: ["CallableFunctionsPlugin"],
          callback({ resolvedPreset }, { introspection, serviceName }) {
            const { schemas = ["public"] } = resolvedPreset.pgServices!.find(({ name }) => name === serviceName)!;
            list = () => partsOf(introspection, schemas);
            if (!isOut) return;
            const parts = list();
            list = () => parts;
            for (const part of parts) if (isOut(part.object)) part.remove();
          },
        },
      },
    },
  };
  return { plugin, parts: () => list() };
}

/** Of a build that may succeed the next time. */
export function isOfConnection(error: unknown): boolean {
  if (error instanceof ApiError || error instanceof pg.DatabaseError) return true;
  return error instanceof Error && error.cause !== undefined && isOfConnection(error.cause);
}

/** All that it says, and what was thrown beneath it, without colours. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const inner = error instanceof AggregateError ? error.errors : [];
  const texts = [error.message, ...inner.map(textOf), ...(error.cause === undefined ? [] : [textOf(error.cause)])];
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is how colours begin.
  return texts.join("\n").replace(/\u001b\[[\d;]*m/g, "");
}

function toLeftOut({ object, fix, error }: Faulty): LeftOut {
  const [line = ""] = textOf(error).split("\n");
  return { object, reason: `the schema cannot be built with it: ${line}`, fix, isFault: true };
}
