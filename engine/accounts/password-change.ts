import { type AsOwner, inOwnerTransaction } from "../database/owner-pool.ts";
import { ApiError } from "../errors.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "../identity/client-info.ts";
import type { OpenSignIn } from "./login.ts";
import type { LoginAttempts } from "./login-attempts.ts";
import { checkLength, checkNewPassword, type PasswordPolicy } from "./password-policy.ts";
import type { Passwords } from "./passwords.ts";

export type PasswordChange = { readonly currentPassword: string; readonly newPassword: string };

/** Changes the password and ends all sessions and tokens of the user; `open` creates a new one for this client. */
export type ChangePassword = <T>(
  userId: string,
  change: PasswordChange,
  clientInfo: ClientInfo,
  open: OpenSignIn<T>,
) => Promise<T>;

type ChangePasswordOptions = {
  readonly asOwner: AsOwner;
  readonly passwords: Passwords;
  readonly attempts: LoginAttempts;
  readonly policy: PasswordPolicy;
};

export function makeChangePassword({ asOwner, passwords, attempts, policy }: ChangePasswordOptions): ChangePassword {
  return async (userId, { currentPassword, newPassword }, clientInfo, open) => {
    checkLength(currentPassword, "currentPassword");
    checkNewPassword(newPassword, { policy, field: "newPassword" });
    const attempt = await attempts.beginFor(userId, clientInfo);
    if (!(await attempts.hasPassword(attempt, currentPassword))) {
      await attempts.fail(attempt, "password");
      throw wrongPassword();
    }
    const newHash = await attempts.withdrawOnError(attempt, async () => {
      checkNewPassword(newPassword, { policy, field: "newPassword", personalWords: [attempt.countedName] });
      return passwords.hash(newPassword);
    });
    const opened = await inOwnerTransaction(asOwner, async (client) => {
      const { rows } = await client.query<{ changed: boolean }>(
        `select auth.change_password($2, $3, $4, $5, ${CLIENT_INFO_SQL}) as changed`,
        [clientInfoParameter(clientInfo), attempt.countedName, userId, attempt.passwordHash, newHash],
      );
      return rows[0]!.changed ? { value: await open(client, userId, clientInfo) } : null;
    });
    if (!opened) throw wrongPassword();
    return opened.value;
  };
}

/** Not 401: the user is signed in and need not sign in again. */
function wrongPassword(): ApiError {
  const message = "The current password is wrong.";
  return new ApiError("invalid", "INVALID_CREDENTIALS", message, { details: [{ field: "currentPassword", message }] });
}
