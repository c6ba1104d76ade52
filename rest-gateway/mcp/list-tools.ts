import { createHash } from "node:crypto";
import type { Catalog, Routine } from "#catalog";
import { readComment, type VisibleTable } from "#rest-gateway/openapi/schemas";
import { GENERIC_TOOLS } from "./generic-tools.ts";
import type { McpGrants } from "./grants.ts";
import {
  ANNOTATIONS,
  type GenericToolName,
  type McpSchema,
  type McpTool,
  type TableVerb,
  type ToolDescription,
  verbsOf,
} from "./surface.ts";
import {
  CALL_RESULT,
  checkTexts,
  deleteArguments,
  insertArguments,
  type RowSchemas,
  readArguments,
  routineArguments,
  rowSchemasOf,
  rowsResult,
  toInputSchema,
  toResultSchema,
  updateArguments,
  writeResult,
} from "./tool-schemas.ts";

const MAX_NAME_LENGTH = 64;

/** Names that all clients accept: letters, digits, `_` and `-`, at most 64. Names that would be equal differ at their end. */
class ToolNames {
  readonly #used = new Set<string>();

  add(wanted: string): string {
    const plain = wanted.replaceAll(/[^A-Za-z0-9_-]/g, "_");
    const isExact = plain === wanted && plain.length <= MAX_NAME_LENGTH && !this.#used.has(plain);
    const name = isExact ? plain : `${plain.slice(0, MAX_NAME_LENGTH - 9)}_${hashOf(wanted)}`;
    this.#used.add(name);
    return name;
  }
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}

/** The maximum number of tools. With more, models choose badly and the list fills their context, so tools take the table as an argument. */
const MAX_TOOLS = 60;

type ToolContext = { readonly catalog: Catalog; readonly grants: McpGrants; readonly maxRows: number };

/** Makes the tools of these schemas, or generic ones if there were too many. */
export function makeTools(schemas: readonly McpSchema[], context: ToolContext): ReadonlyMap<string, McpTool> {
  const count = schemas.reduce(
    (sum, { tables, routines }) =>
      tables.reduce((verbs, visible) => verbs + verbsOf(visible, context.grants).length, sum) + routines.length,
    0,
  );
  const tools = count > MAX_TOOLS ? genericTools(context) : specificTools(schemas, context);
  const byName = tools.toSorted((one, other) => (one.description.name < other.description.name ? -1 : 1));
  return new Map(byName.map((tool) => [tool.description.name, tool]));
}

function genericTools({ grants, maxRows }: ToolContext): McpTool[] {
  return Object.entries(GENERIC_TOOLS)
    .filter(([, { annotations }]) => annotations.readOnlyHint || grants.allowsChanges)
    .map(([name, { inputSchema, ...rest }]) => ({
      description: { name, ...rest, inputSchema: inputSchema(maxRows) },
      operation: { kind: "generic", name: name as GenericToolName },
    }));
}

function specificTools(schemas: readonly McpSchema[], context: ToolContext): McpTool[] {
  const names = new ToolNames();
  return schemas.flatMap((schema, index) => {
    const prefix = index === 0 ? "" : `${schema.name}_`;
    const ofTables = schema.tables.flatMap((visible) => {
      const rows = rowSchemasOf(visible, { ...schema, catalog: context.catalog });
      return verbsOf(visible, context.grants).map((verb): McpTool => {
        const name = names.add(`${verb}_${prefix}${visible.table.name}`);
        return {
          description: describeTable(name, verb, visible, rows, context),
          operation: { kind: "table", verb, visible },
        };
      });
    });
    const ofRoutines = schema.routines.map((routine): McpTool => {
      const name = names.add(`call_${prefix}${routine.name}`);
      return { description: describeRoutine(name, routine, schema), operation: { kind: "routine", routine } };
    });
    return [...ofTables, ...ofRoutines];
  });
}

const VERB_TITLES = { read: "Read", insert: "Insert into", update: "Update", delete: "Delete from" } as const;

function describeTable(
  name: string,
  verb: TableVerb,
  visible: VisibleTable,
  { row, insert, update }: RowSchemas,
  { maxRows }: ToolContext,
): ToolDescription {
  const { table, selectable } = visible;
  const inputs = {
    read: () => readArguments(selectable, maxRows),
    insert: () => insertArguments(insert, maxRows),
    update: () => updateArguments(update, selectable),
    delete: () => deleteArguments(selectable),
  };
  const title = `${VERB_TITLES[verb]} ${table.schema}.${table.name}`;
  const checks = verb === "insert" || verb === "update" ? checkTexts(visible) : [];
  const limit =
    verb === "update" || verb === "delete" ? [`At most ${maxRows} rows; otherwise nothing is changed.`] : [];
  const notes = [readComment(table.comment).text, ...checks.map((check) => `Constraint: ${check}`), ...limit];
  return {
    name,
    title,
    description: [`${title}.`, ...notes.filter((note) => note !== undefined)].join("\n"),
    inputSchema: toInputSchema(inputs[verb]()),
    outputSchema: verb === "read" ? rowsResult(toResultSchema(row)) : writeResult(toResultSchema(row)),
    annotations: ANNOTATIONS[verb],
  };
}

function describeRoutine(name: string, routine: Routine, { typeSchema }: McpSchema): ToolDescription {
  const isReadOnly = routine.volatility !== "volatile";
  const title = `Call ${routine.schema}.${routine.name}`;
  const { text } = readComment(routine.comment);
  return {
    name,
    title,
    description: [`${title}.`, ...(text === undefined ? [] : [text])].join("\n"),
    inputSchema: toInputSchema(routineArguments(routine, typeSchema)),
    outputSchema: CALL_RESULT,
    annotations: isReadOnly ? ANNOTATIONS.read : ANNOTATIONS.call,
  };
}
