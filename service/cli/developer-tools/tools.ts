import type { Config } from "#config";
import { tryStatements } from "#operations/inspect";
import { readGuideText } from "#rest-gateway/guide";
import { requireMigrated, withCatalog } from "../command/command-context.ts";
import { describeSchema } from "./describe-schema.ts";
import { type CommandOutput, runOwnCommand } from "./own-command.ts";

type ToolContext = { readonly config: Config; readonly signal: AbortSignal };

/** The arguments of all tools. Each tool reads those that it declares. */
export type ToolArguments = {
  readonly words?: string;
  readonly page?: string;
  readonly table?: string;
  readonly request?: string;
  readonly role?: string;
  readonly roles?: readonly string[];
  readonly claims?: string;
  readonly sql?: string;
};

type DeveloperTool = {
  readonly name: string;
  readonly description: string;
  /** JSON Schemas of the arguments. */
  readonly properties: Readonly<Partial<Record<keyof ToolArguments, object>>>;
  readonly required: readonly (keyof ToolArguments)[];
  /** True if the tool only reads: clients run it without asking the developer. */
  readonly isReadOnly: boolean;
  /** Runs the tool. The arguments fit the schemas. */
  readonly run: (args: ToolArguments, context: ToolContext) => Promise<CommandOutput>;
};

const text = (description: string) => ({ type: "string", description });
const ROLE = text("The role of the caller, such as anon or authenticated.");
const CLAIMS = text('The claims of the caller\'s token as JSON text, such as {"sub": "7"}.');
const REQUEST = text(
  "A path such as /rest/v1/things?done=is.false, /api/v1/things or /realtime/v1?table=things; or a GraphQL query.",
);

/** The tools that a coding agent may call. None of them migrates or changes the database. */
export const DEVELOPER_TOOLS: readonly DeveloperTool[] = [
  {
    name: "search_docs",
    isReadOnly: true,
    description: "Finds sections of this release's documentation that contain all words.",
    properties: { words: text("A few words: a setting, an error code, a header.") },
    required: ["words"],
    run: ({ words }) => searchDocs(words!),
  },
  {
    name: "read_docs",
    isReadOnly: true,
    description: "Returns a page of the documentation, as Markdown.",
    properties: { page: text("Its name, as search_docs gives it.") },
    required: ["page"],
    run: ({ page }) => readDocs(page!),
  },
  {
    name: "describe_schema",
    isReadOnly: true,
    description:
      "Lists tables and functions; or describes one table: columns, keys, indexes, triggers, policies, grants.",
    properties: { table: text("With its schema if several tables have the name.") },
    required: [],
    run: async ({ table }, { config }) => {
      await requireMigrated(config);
      return withCatalog(config, ({ catalog, postgres }) => describeSchema(table, { catalog, ...postgres }));
    },
  },
  {
    name: "why",
    isReadOnly: true,
    description:
      "Explains which rows of a request a caller sees, which policies hide the others, and the execution plan.",
    properties: { request: REQUEST, role: ROLE, claims: CLAIMS },
    required: ["request"],
    run: async ({ request, role, claims }, { config, signal }) => {
      await requireMigrated(config);
      const words = [...optionOf("role", role), ...optionOf("claims", claims), "--", request!];
      return runOwnCommand("why", words, { signal });
    },
  },
  {
    name: "policies",
    isReadOnly: true,
    description:
      "Tries each command on each table as each role, rolls it back, and says how many rows each role reaches.",
    properties: {
      roles: { type: "array", items: ROLE, description: "Without it: all roles of requests." },
      claims: CLAIMS,
    },
    required: [],
    run: async ({ roles = [], claims }, { config, signal }) => {
      await requireMigrated(config);
      const words = [...roles.flatMap((role) => optionOf("role", role)), ...optionOf("claims", claims)];
      return runOwnCommand("policies", words, { signal });
    },
  },
  {
    name: "doctor",
    isReadOnly: true,
    description: "Checks security, performance and configuration, and says how to fix each problem.",
    properties: {},
    required: [],
    run: async (_args, { config, signal }) => {
      await requireMigrated(config);
      return runOwnCommand("doctor", [], { signal, exitsWithFindings: true });
    },
  },
  {
    name: "migration_status",
    isReadOnly: true,
    description: "Says which migrations are applied and which are pending, and where the database differs from them.",
    properties: {},
    required: [],
    run: (_args, { signal }) => runOwnCommand("migrate", ["status"], { signal }),
  },
  {
    name: "try_migration",
    // Sequences, other servers and files are not rolled back.
    isReadOnly: false,
    description:
      "Runs SQL as the owner in one transaction, says how each statement ended, and rolls everything back. Its locks hold others up meanwhile.",
    properties: { sql: text("The statements of the migration.") },
    required: ["sql"],
    run: async ({ sql }, { config, signal }) => {
      await requireMigrated(config);
      const connectTimeoutMs = config.acquireTimeout * 1_000;
      return withCatalog(config, ({ postgres }) =>
        tryStatements(sql!, { url: postgres.directUrl, connectTimeoutMs, signal }),
      );
    },
  },
];

let guide: ReturnType<typeof readGuideText> | undefined;

async function searchDocs(words: string): Promise<CommandOutput> {
  guide ??= readGuideText();
  const found = (await guide).search(words);
  const lines = found.map(({ page, heading, excerpt }) => `${page}: ${heading}\n  ${excerpt}`);
  return { text: lines.join("\n") || "No section contains all these words. Search for fewer.", hasFailed: false };
}

async function readDocs(page: string): Promise<CommandOutput> {
  guide ??= readGuideText();
  const { read, names } = await guide;
  const found = read(page);
  return {
    text: found ?? `There is no page ${page}. The pages are: ${names.join(", ")}.`,
    hasFailed: found === null,
  };
}

const optionOf = (name: string, value: string | undefined) => (value === undefined ? [] : [`--${name}=${value}`]);
