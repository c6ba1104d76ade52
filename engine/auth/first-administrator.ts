import type { Config } from "../config/config.ts";
import type { AsOwner } from "../database/as-owner.ts";
import { ApiError, faultsOf } from "../errors.ts";
import { makeAdministration } from "./administration.ts";

type AdministratorSettings = Pick<Config, "adminEmail" | "adminPassword" | "passwordPolicy">;

/** Creates the administrator of ADMIN_EMAIL, unless there is an administrator already. True if it was created. */
export async function createFirstAdministrator(
  asOwner: AsOwner,
  { adminEmail: email, adminPassword: password, passwordPolicy: policy }: AdministratorSettings,
): Promise<boolean> {
  if (email === null || password === null) return false;
  const outcome = await makeAdministration({ asOwner, policy })
    .ensureAdministrator({ email, password })
    .catch(explainRefusal);
  return outcome === "made";
}

function explainRefusal(error: unknown): never {
  if (!(error instanceof ApiError)) throw error;
  throw new Error(["ADMIN_PASSWORD:", error.message, ...faultsOf(error).map((fault) => fault.message)].join(" "));
}
