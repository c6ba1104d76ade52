import { TYPES } from "postgraphile/@dataplan/pg";

type Inflection = GraphileBuild.Inflection;

/** Ends a name that something else has already. It is no part of what clients see. */
const MARK = /~\d+/;

const OF_CORE: ReadonlySet<string> = new Set(["ltree", ...Object.values(TYPES).map(({ name }) => name)]);

const owners = new WeakMap<Inflection, Map<string, string>>();

/** Core keeps all codecs, all resources and the relations of one table under one name each; SQL has no such rule. */
export function registryName(inflection: Inflection, kind: string, name: string, id: string): string {
  const known = owners.get(inflection) ?? new Map<string, string>();
  owners.set(inflection, known);
  const wanted = name || "unnamed";
  const owner = known.get(`${kind} ${wanted}`) ?? id;
  known.set(`${kind} ${wanted}`, owner);
  const isCores = kind === "codec" && OF_CORE.has(wanted);
  return owner === id && !isCores ? wanted : `${wanted}~${id}`;
}

export function withoutMark(name: string): string {
  return name.replace(MARK, "");
}
