import type { Config } from "../config/config.ts";
import type { AsOwner } from "../database/as-owner.ts";
import { ApiError, faultsOf } from "../errors.ts";
import { makeAdministration } from "./administrators.ts";

type Given = Pick<Config, "adminEmail" | "adminPassword" | "passwordPolicy">;

/** Makes the administrator whom the settings name, unless there is one already; true when one was made. */
export async function makeFirstAdministrator(
  asOwner: AsOwner,
  { adminEmail: email, adminPassword: password, passwordPolicy: policy }: Given,
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
