import {
  type BranchOptions,
  createBranch,
  databaseOf,
  dropBranch,
  listBranches,
  type PostgresUrls,
  reachPostgres,
} from "#cluster";
import { readConfig } from "#config";
import { commandLine } from "#runtime";
import { findAction, formatColumns, runCommand, UsageError } from "./command.ts";

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

const SHARE = /^(\d{1,3}(?:\.\d{1,9})?)%$/;

function parseSample(text: string | undefined, seed: string | undefined): BranchOptions["sample"] {
  if (text === undefined) {
    if (seed !== undefined) throw new UsageError("--seed is only allowed with --sample.");
    return null;
  }
  const share = Number(SHARE.exec(text)?.[1]) / 100;
  if (!(share > 0 && share <= 1)) throw new UsageError("--sample takes a percentage above 0: --sample 0.5%.");
  if (!/^\d{1,9}$/.test(seed ?? "0")) throw new UsageError("--seed takes a number of at most nine digits.");
  return { share, seed: Number(seed ?? 0) };
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
    const options: BranchOptions = {
      schemaOnly: isSchemaOnly as boolean,
      sample: parseSample(share as string | undefined, seed as string | undefined),
      isAnonymized: anonymize as boolean,
    };
    const isWithRows = options.sample !== null || options.isAnonymized;
    if (action !== "create" && (options.schemaOnly || isWithRows))
      throw new UsageError("--schema-only, --sample and --anonymize are only allowed with create.");
    if (options.schemaOnly && isWithRows) throw new UsageError("--schema-only copies no rows to choose or anonymize.");
    // A branch of a branch has no name: all are of the database.
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
