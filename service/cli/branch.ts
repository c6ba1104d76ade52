import { createBranch, databaseOf, dropBranch, listBranches, type PostgresUrls, reachPostgres } from "#cluster";
import { readConfig } from "#config";
import { commandLine } from "#runtime";
import { findAction, formatColumns, runCommand, UsageError } from "./command.ts";

type BranchAction = (postgres: PostgresUrls, name: string, options: { readonly schemaOnly: boolean }) => Promise<void>;

const ACTIONS: Readonly<Record<string, BranchAction>> = {
  async create(postgres, name, options) {
    const begun = performance.now();
    const { copy, warnings } = await createBranch(postgres, name, options);
    for (const warning of warnings) console.error(`warning: ${warning}`);
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    console.log(
      `Created the branch ${name} (${copy}) in ${seconds} s. Use it: ${commandLine("start", `--branch ${name}`)}`,
    );
  },
  async list(postgres) {
    const branches = await listBranches(postgres, await databaseOf(postgres.directUrl));
    if (branches.length === 0) console.log("There are no branches.");
    else {
      const lines = branches.map(({ name, bytes, sessions }) => [
        name,
        `${Math.ceil(bytes / 2 ** 20)} MiB`,
        String(sessions),
      ]);
      console.log(formatColumns([["branch", "size", "sessions"], ...lines]));
    }
  },
  async drop(postgres, name) {
    await dropBranch(postgres, name);
    console.log(`Dropped the branch ${name}.`);
  },
};

await runCommand({
  usage: `${commandLine("branch", "create NAME [--schema-only]")}
  Creates a branch: a copy of the database on the same server, with all rows or none. Its queue is empty, its schedules and
  webhooks are disabled. Roles, keys and the contents of files are shared with the database.
${commandLine("branch", "list")}
  Prints the branches.
${commandLine("branch", "drop NAME")}
  Drops a branch with its rows.

  ${commandLine("start", "--branch NAME")} serves a branch; with DATABASE_BRANCH=NAME each command uses it.

Example:
  ${commandLine("branch", "create likes --schema-only")}`,
  options: { "schema-only": { type: "boolean" } },
  async run(_, [action = "", name, ...others], { "schema-only": schemaOnly }) {
    const act = findAction(ACTIONS, "branch", action);
    if (action === "list" ? name !== undefined : name === undefined || others.length > 0)
      throw new UsageError(action === "list" ? "list takes no name." : `Name one branch: ${action} NAME.`);
    if (schemaOnly && action !== "create") throw new UsageError("--schema-only is only allowed with create.");
    // A branch of a branch has no name: all are of the database.
    const { DATABASE_BRANCH: _branch, ...environment } = process.env;
    if (name !== undefined) readConfig({ ...environment, DATABASE_BRANCH: name });
    const { config } = readConfig(environment);
    const postgres = await reachPostgres(config, (step) => console.error(step));
    try {
      await act(postgres, name ?? "", { schemaOnly: schemaOnly === true });
    } finally {
      await postgres.close();
    }
  },
});
