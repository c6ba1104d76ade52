import { createBranch, databaseOf, dropBranch, listBranches, type PostgresUrls } from "#cluster";
import { branchDatabase, branchName, type Config, withDatabase } from "#config";
import { jsonResponse } from "#http";
import { type BodyField, OPTIONAL_BOOLEAN, readFields } from "#rest-gateway/sign-in";
import { commandLine } from "#runtime";
import { rejectAsConflict, resourceNotFound } from "./admin-errors.ts";
import { type AdminRoutes, type AdminServices, limitRunning, NO_CONTENT } from "./admin-request.ts";

const BRANCH_NAME: BodyField<string> = {
  isRequired: true,
  accepts: (value): value is string => typeof value === "string" && isBranchName(value),
  message: "At most 30 of the characters a-z, 0-9, _ and -, of which the first is a letter.",
};

/** Each copies a database. */
const MAX_RUNNING = 2;

/** `/branches`: copies of the database on the same server. */
export function branchRoutes({ config, postgres, schemaChanges }: AdminServices): AdminRoutes {
  const limited = limitRunning(MAX_RUNNING, "copies of the database");
  const list = async () => {
    const original = originalOf(postgres, config);
    return listBranches(original, await databaseOf(original.directUrl)).catch(rejectAsConflict);
  };
  return {
    "GET /branches": async () => {
      const branches = await list();
      return jsonResponse(200, {
        refusal: schemaChanges.refusal(),
        served: config.branch,
        create_command: commandLine("branch", "create NAME"),
        branches: branches.map((branch) => ({ ...branch, serve_command: serveCommand(branch.name) })),
      });
    },
    "POST /branches": async ({ request, logEvent }) => {
      schemaChanges.requireEnabled();
      const { name, schema_only: sent } = await readFields(request, {
        name: BRANCH_NAME,
        schema_only: OPTIONAL_BOOLEAN,
      });
      const schemaOnly = sent === true;
      await logEvent("studio.branch_created", { name, schema_only: schemaOnly });
      const created = await limited(() =>
        createBranch(originalOf(postgres, config), name, { schemaOnly, sample: null, isAnonymized: false }).catch(
          rejectAsConflict,
        ),
      );
      return jsonResponse(201, { name, ...created, serve_command: serveCommand(name) });
    },
    "DELETE /branches/{name}": async ({ request, logEvent }) => {
      schemaChanges.requireEnabled();
      const name = request.parameters.name!;
      if (!(await list()).some((branch) => branch.name === name))
        throw resourceNotFound(`There is no branch "${name}".`);
      await logEvent("studio.branch_dropped", { name });
      await dropBranch(originalOf(postgres, config), name).catch(rejectAsConflict);
      return NO_CONTENT;
    },
  };
}

/** A branch of a branch has no name: all are of the database, also while a branch is served. */
function originalOf(postgres: PostgresUrls, { branch }: Config): PostgresUrls {
  if (branch === null) return postgres;
  const suffix = branchDatabase("", branch);
  const directUrl = withDatabase(postgres.directUrl, (name) =>
    name.endsWith(suffix) ? name.slice(0, -suffix.length) : name,
  );
  return { ...postgres, directUrl };
}

function isBranchName(name: string): boolean {
  try {
    return branchName(name) === name;
  } catch {
    return false;
  }
}

function serveCommand(name: string): string {
  return commandLine("start", `--branch ${name}`);
}
