import { oncePer } from "../engine/once-per.ts";
import { mutationsOf } from "./FunctionMutationsPlugin.ts";
import { isTable, keyOf, type Table } from "./table.ts";

export type Verb = "create" | "update" | "delete";

export type TableMutation = {
  readonly verb: Verb;
  readonly table: Table;
  readonly name: string;
  /** What its input may hold. */
  readonly columns: readonly string[];
  /** Whether anybody may see the row afterwards. */
  readonly isReadable: boolean;
};

/** What PostGraphile's behaviors call them. */
export const WRITES = { create: "insert", update: "update", delete: "delete" } as const;

/** What clients may do to tables, where no function of that name does it. */
export const tableMutationsOf = oncePer((build: GraphileBuild.Build): TableMutation[] =>
  Object.values(build.pgResources)
    .filter(isTable)
    .flatMap((table) => mutationsOfTable(table, build)),
);

export const mutationsOfTable = oncePer((table: Table, build: GraphileBuild.Build): TableMutation[] =>
  [
    ...mutationOf(build, table, "create"),
    ...mutationOf(build, table, "update"),
    ...mutationOf(build, table, "delete"),
  ].filter(({ name }) => !functionNames(build).has(name)),
);

const functionNames = oncePer((build: GraphileBuild.Build): ReadonlySet<string> => {
  return new Set(mutationsOf(build).map((resource) => build.inflection.customMutationField({ resource })));
});

function mutationOf({ behavior, inflection }: GraphileBuild.Build, table: Table, verb: Verb): TableMutation[] {
  if (!behavior.pgResourceMatches(table, `resource:${WRITES[verb]}`)) return [];
  const isReadable = behavior.pgResourceMatches(table, "resource:select") === true;
  // Who names a row by its key has to be able to read that.
  if (verb !== "create" && (keyOf(table) === null || !isReadable)) return [];
  const name = inflection.tableMutation({ verb, table });
  if (verb === "delete") return [{ verb, table, name, columns: [], isReadable }];
  const columns = Object.keys(table.codec.attributes).filter((column) =>
    behavior.pgCodecAttributeMatches([table.codec, column], `attribute:${WRITES[verb]}`),
  );
  return columns.length > 0 ? [{ verb, table, name, columns, isReadable }] : [];
}
