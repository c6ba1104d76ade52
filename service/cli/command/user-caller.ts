import { makeAdministratorTokens } from "#accounts";
import { type Claims, loadDeploymentKeys, requireIssuingKeys } from "#accounts/identity";
import type { Config } from "#config";
import { withServiceClient } from "#postgres/client";
import { readSecrets } from "#runtime";

export type UserCaller = { readonly role: string; readonly claims: Claims };

/** Finds a user by e-mail address or user name, and returns role and claims as after a sign-in now, with the chosen claims instead of its own. */
export async function readUserCaller(
  name: string,
  config: Config,
  ownerUrl: string,
  chosenClaims: Claims,
): Promise<UserCaller> {
  const keys = requireIssuingKeys(await loadDeploymentKeys(config, readSecrets));
  return withServiceClient(ownerUrl, async (client) => {
    const { rows } = await client.query<{ id: string | null }>("select (auth.find_account($1)).user_id as id", [name]);
    const tokens = makeAdministratorTokens({ asOwner: (read) => read(client), keys, config });
    const token = rows[0]!.id === null ? null : await tokens.asUser(rows[0]!.id, {});
    if (!token) {
      const number = /^\d+$/.test(name) ? ` A number is given with --role and --sub ${name}.` : "";
      throw new Error(`User "${name}" not found.${number}`);
    }
    const { act: _none, ...claims } = token.claims as Claims;
    return { role: String(claims.role), claims: { ...claims, ...chosenClaims } };
  });
}
