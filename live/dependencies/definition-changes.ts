import { type DefinitionMark, readDefinitionMarks, readDistributedTables } from "#catalog";
import type { AsOwner } from "#postgres/database";
import type { QueryDependencies } from "./query-dependencies.ts";

/** `others`: marks of all that many queries may depend on, such as types, operators, schemas and roles. */
type Definitions = { readonly others: string; readonly objects: ReadonlyMap<string, DefinitionMark> };

/** Publications decide which changes of a table arrive. The row of relation 0 is for the publications themselves. */
const PUBLISHED = `
  select c.oid::pg_catalog.int8::pg_catalog.float8 as oid, pg_catalog.string_agg(p::pg_catalog.text, ' ' order by p.pubname) as mark
  from pg_catalog.pg_publication_tables p join pg_catalog.pg_namespace n on n.nspname = p.schemaname
    join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = p.tablename
  group by c.oid
  union all select 0, pg_catalog.string_agg(pg_catalog.concat(oid, ' ', xmin), ' ' order by oid) from pg_catalog.pg_publication`;

type PublishedRow = { readonly oid: number; readonly mark: string | null };

async function readDefinitions(asOwner: AsOwner): Promise<Definitions> {
  const { definitions, published, distributed } = await asOwner(async (client) => ({
    definitions: await readDefinitionMarks(client),
    published: (await client.query<PublishedRow>(PUBLISHED)).rows,
    distributed: await readDistributedTables(async (query) => (await client.query(query)).rows),
  }));
  const publishedMarks = new Map(published.map(({ oid, mark }) => [oid, mark]));
  const ofRelation = ({ kind, oid, mark }: DefinitionMark) =>
    kind === "relation" ? `${mark} ${publishedMarks.get(oid) ?? ""}` : mark;
  const objects = definitions.filter(({ kind }) => kind !== "other");
  const others = definitions.filter(({ kind }) => kind === "other").map(({ mark }) => mark);
  return {
    others: JSON.stringify([others, publishedMarks.get(0), distributed.map(({ oid }) => oid).sort()]),
    objects: new Map(
      objects.map((definition) => [
        `${definition.kind} ${definition.oid}`,
        { ...definition, mark: ofRelation(definition) },
      ]),
    ),
  };
}

/** The part of a query's dependencies that a change of definitions is compared with. */
type ComparedDependencies = Pick<QueryDependencies, "relations" | "deciding" | "obstacles" | "texts">;

/** The definitions that have changed since they were read before. */
export type DefinitionChanges = { affect(dependencies: ComparedDependencies): boolean };

export const ALL_CHANGED: DefinitionChanges = { affect: () => true };

/** Postgres shortens longer names, so a text may have more of a name than this. */
const LONGEST_NAME = 62;
/** Names with escapes. */
const HAS_ESCAPED_NAMES = /\bu&"/i;

/** Finds what has changed, from one reading of the definitions to the next. */
export class DefinitionWatch {
  readonly #asOwner: AsOwner;
  #last: Promise<Definitions> | null = null;

  constructor(asOwner: AsOwner) {
    this.#asOwner = asOwner;
  }

  /** Call before dependencies are read: later changes of what they depend on are found. */
  async begin(): Promise<void> {
    this.#last ??= this.#read();
    await this.#last;
  }

  /** The changes since the last call; all definitions if they are not known. */
  async readChanges(): Promise<DefinitionChanges> {
    try {
      const [before, after] = await Promise.all([this.#last, readDefinitions(this.#asOwner)]);
      this.#last = Promise.resolve(after);
      return before ? compare(before, after) : ALL_CHANGED;
    } catch {
      return ALL_CHANGED;
    }
  }

  #read(): Promise<Definitions> {
    const read = readDefinitions(this.#asOwner);
    read.catch(() => {
      this.#last = null;
    });
    return read;
  }
}

function compare(before: Definitions, after: Definitions): DefinitionChanges {
  if (before.others !== after.others) return ALL_CHANGED;
  const changed: DefinitionMark[] = [];
  for (const [key, object] of before.objects) if (after.objects.get(key)?.mark !== object.mark) changed.push(object);
  for (const [key, object] of after.objects) if (before.objects.get(key)?.mark !== object.mark) changed.push(object);
  const names = new Set(changed.map(({ name }) => name.toLowerCase()));
  if (names.values().some((name) => name.includes('"') || Buffer.byteLength(name) > LONGEST_NAME)) return ALL_CHANGED;
  const oidsOf = (wanted: DefinitionMark["kind"]) =>
    new Set(changed.flatMap(({ kind, oid }) => (kind === wanted ? oid : [])));
  const [relations, functions] = [oidsOf("relation"), oidsOf("function")];
  const named = new RegExp(`(?<![\\w$])(?:${[...names].map((name) => RegExp.escape(name)).join("|")})(?![\\w$])`);
  return {
    affect: ({ relations: read, deciding, obstacles, texts }) =>
      changed.length > 0 &&
      (obstacles.length > 0 ||
        read.some(({ oid }) => relations.has(oid)) ||
        deciding.relations.some((oid) => relations.has(oid)) ||
        deciding.functions.some((oid) => functions.has(oid)) ||
        // Names in texts are looked up anew: a new table or function may be found before the one that was meant.
        texts.some((text) => HAS_ESCAPED_NAMES.test(text) || named.test(text.toLowerCase()))),
  };
}
