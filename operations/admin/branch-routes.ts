import {
  type BranchOptions,
  BranchOptionsError,
  createBranch,
  databaseOf,
  dropBranch,
  listBranches,
  type PostgresUrls,
  parseBranchOptions,
} from "#cluster";
import { branchDatabase, branchName, type Config, withDatabase } from "#config";
import { jsonResponse, type MatchedRequest } from "#http";
import type { BranchList, NewBranch } from "#operations/admin-types";
import { prefersAsync } from "#rest-gateway/pipeline";
import {
  type BodyField,
  OPTIONAL_BOOLEAN,
  OPTIONAL_TEXT,
  OPTIONAL_WHOLE_NUMBER,
  readFields,
} from "#rest-gateway/sign-in";
import { commandLine } from "#runtime";
import { invalidRequest, rejectAsConflict, resourceNotFound } from "./admin-errors.ts";
import { type AdminRoutes, type AdminServices, limitRunning, NO_CONTENT } from "./admin-request.ts";

const BRANCH_NAME: BodyField<string> = {
  isRequired: true,
  accepts: (value): value is string => typeof value === "string" && isBranchName(value),
  message: "At most 30 of the characters a-z, 0-9, _ and -, of which the first is a letter.",
};

const BRANCH = {
  name: BRANCH_NAME,
  schema_only: OPTIONAL_BOOLEAN,
  sample: OPTIONAL_TEXT,
  seed: OPTIONAL_WHOLE_NUMBER,
  anonymize: OPTIONAL_BOOLEAN,
} satisfies Record<keyof NewBranch, BodyField<unknown>>;

/** The maximum number of concurrent copies of databases. */
const MAX_RUNNING = 2;

/** `/branches`: copies of the database on the same server. */
export function branchRoutes({ config, postgres, schemaChanges, log }: AdminServices): AdminRoutes {
  const limited = limitRunning(MAX_RUNNING, "copies of the database");
  const list = async () => {
    const original = originalOf(postgres, config);
    return listBranches(original, await databaseOf(original.directUrl)).catch(rejectAsConflict);
  };
  return {
    "GET /branches": async () => {
      const branches = await list();
      const listed: BranchList = {
        refusal: schemaChanges.refusal(),
        served: config.branch,
        create_command: commandLine("branch", "create NAME"),
        branches: branches.map((branch) => ({ ...branch, serve_command: serveCommand(branch.name) })),
      };
      return jsonResponse(200, listed);
    },
    "POST /branches": async ({ request, logEvent }) => {
      schemaChanges.requireEnabled();
      const { name, options } = await readBranch(request);
      const { schemaOnly, sample, isAnonymized } = options;
      await logEvent("studio.branch_created", {
        name,
        schema_only: schemaOnly,
        ...(sample && { sample: sample.share, seed: sample.seed }),
        anonymize: isAnonymized,
      });
      const serve_command = serveCommand(name);
      const listed = Promise.withResolvers<"listed">();
      const isAsync = prefersAsync(request);
      const creation = isAsync ? { onListed: () => listed.resolve("listed") } : {};
      const created = limited(() =>
        createBranch(originalOf(postgres, config), name, options, creation).catch(rejectAsConflict),
      );
      const result = await Promise.race([created, listed.promise]);
      if (result !== "listed") return jsonResponse(201, { name, state: "complete", ...result, serve_command });
      // The list of branches has the reason of the failure.
      created.catch((err: Error) => log.error({ err, branch: name }, "a branch was not created"));
      return jsonResponse(
        202,
        { name, state: "being copied", serve_command },
        { "Preference-Applied": "respond-async" },
      );
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

async function readBranch(
  request: MatchedRequest,
): Promise<{ readonly name: string; readonly options: BranchOptions }> {
  const { name, schema_only: schemaOnly, sample, seed, anonymize } = await readFields(request, BRANCH);
  try {
    const rows = { sample, seed: seed === null ? null : String(seed) };
    return {
      name,
      options: parseBranchOptions({ ...rows, schemaOnly: schemaOnly === true, isAnonymized: anonymize === true }),
    };
  } catch (error) {
    if (error instanceof BranchOptionsError) throw invalidRequest(error.message);
    throw error;
  }
}

/** Returns the URLs of the original database, even while a branch is served: a branch of a branch has no name. */
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
