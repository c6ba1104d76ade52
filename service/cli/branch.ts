import {
  type BranchOptions,
  type BranchRequest,
  createBranch,
  databaseOf,
  dropBranch,
  listBranches,
  type PostgresUrls,
  parseBranchOptions,
  reachPostgres,
} from "#cluster";
import { readConfig } from "#config";
import { commandLine } from "#runtime";
import { findAction, formatColumns, runCommand, UsageError } from "./command/command.ts";

type BranchAction = (postgres: PostgresUrls, name: string, options: BranchOptions) => Promise<void>;

const ACTIONS: Readonly<Record<string, BranchAction>> = {
  async create(postgres, name, options) {
    const begun = performance.now();
    const { copy, warnings } = await createBranch(postgres, name, options);
    for (const warning of warnings) console.error(`warning: ${warning}`);
    const rows: string[] = [copy];
    if (options.sample)
      rows.push(`${Number((options.sample.share * 100).toFixed(9))} %`, `seed ${options.sample.seed}`);
    if (options.isAnonymized) rows.push("anonymized");
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    console.log(
      `Created the branch ${name} (${rows.join(", ")}) in ${seconds} s. Use it: ${commandLine("start", `--branch ${name}`)}`,
    );
  },
  async list(postgres) {
    const branches = await listBranches(postgres, await databaseOf(postgres.directUrl));
    if (branches.length === 0) console.log("There are no branches.");
    else {
      const lines = branches.map(({ name, bytes, sessions, state, error }) => [
        name,
        `${Math.ceil(bytes / 2 ** 20)} MiB`,
        String(sessions),
        error === null ? state : `${state}: ${error.split("\n", 1)[0]}`,
      ]);
      console.log(formatColumns([["branch", "size", "sessions", "state"], ...lines]));
    }
  },
  async drop(postgres, name) {
    await dropBranch(postgres, name);
    console.log(`Dropped the branch ${name}.`);
  },
};

function readOptions(request: BranchRequest): BranchOptions {
  try {
    return parseBranchOptions(request);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

await runCommand({
  usage: `${commandLine("branch", "create NAME [--schema-only | --sample 1% [--seed N]] [--anonymize]")}
  Creates a branch: a copy of the database on the same server, with all rows, none or a sample. Its queue is empty, its schedules
  and webhooks are disabled. Roles, keys and the contents of files are shared with the database. A sample has the share of each
  large table and all rows that these refer to. It has the same rows each time; --seed 1 selects others. --anonymize replaces the
  values of columns whose comment has a tag such as @anonymize email, and leaves out what signs accounts in.
${commandLine("branch", "list")}
  Prints the branches.
${commandLine("branch", "drop NAME")}
  Drops a branch with its rows.

  ${commandLine("start", "--branch NAME")} serves a branch; with DATABASE_BRANCH=NAME each command uses it.

Example:
  ${commandLine("branch", "create likes --schema-only")}`,
  options: {
    "schema-only": { type: "boolean", default: false },
    sample: { type: "string" },
    seed: { type: "string" },
    anonymize: { type: "boolean", default: false },
  },
  async run(_, [action = "", name, ...others], { "schema-only": isSchemaOnly, sample: share, seed, anonymize }) {
    const act = findAction(ACTIONS, "branch", action);
    if (action === "list" ? name !== undefined : name === undefined || others.length > 0)
      throw new UsageError(action === "list" ? "list takes no name." : `Name one branch: ${action} NAME.`);
    const options = readOptions({
      schemaOnly: isSchemaOnly as boolean,
      sample: (share as string | undefined) ?? null,
      seed: (seed as string | undefined) ?? null,
      isAnonymized: anonymize as boolean,
    });
    if (action !== "create" && (options.schemaOnly || options.sample !== null || options.isAnonymized))
      throw new UsageError("--schema-only, --sample and --anonymize are only allowed with create.");
    // Branches are made of the database only: a branch of a branch has no name.
    const { DATABASE_BRANCH: _branch, ...environment } = process.env;
    if (name !== undefined) readConfig({ ...environment, DATABASE_BRANCH: name });
    const { config } = readConfig(environment);
    const postgres = await reachPostgres(config, (step) => console.error(step));
    try {
      await act(postgres, name ?? "", options);
    } finally {
      await postgres.close();
    }
  },
});
