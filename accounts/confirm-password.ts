import type pg from "pg";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { ApiError } from "#runtime";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "./identity/client-info.ts";
import type { OpenSignIn } from "./login.ts";
import { type LoginAttempt, type LoginAttempts, requesterOf } from "./login-attempts.ts";
import { checkLength, checkNewPassword, type PasswordPolicy } from "./password-policy.ts";
import type { Passwords } from "./passwords.ts";

/**
 * Checks the password of a signed-in user again, as a login attempt, and runs the work in the transaction that locks the
 * account: no other transaction changes the password in between.
 */
export type ConfirmPassword = <T>(
  userId: string,
  password: string,
  clientInfo: ClientInfo,
  work: (client: pg.ClientBase) => Promise<T>,
) => Promise<T>;

type PasswordChange = { readonly currentPassword: string; readonly newPassword: string };

/** Changes the password and ends all sessions and tokens of the user; `open` creates a new one for this client. */
export type ChangePassword = <T>(
  userId: string,
  change: PasswordChange,
  clientInfo: ClientInfo,
  open: OpenSignIn<T>,
) => Promise<T>;

type ConfirmationOptions = {
  readonly asOwner: AsOwner;
  readonly passwords: Passwords;
  readonly attempts: LoginAttempts;
  readonly policy: PasswordPolicy;
};

export function makePasswordConfirmation({ asOwner, passwords, attempts, policy }: ConfirmationOptions): {
  readonly confirmPassword: ConfirmPassword;
  readonly changePassword: ChangePassword;
} {
  const beginConfirmation = async (
    userId: string,
    { password, field }: { readonly password: string; readonly field: string },
    clientInfo: ClientInfo,
  ): Promise<LoginAttempt> => {
    checkLength(password, field);
    const attempt = await attempts.beginFor(userId, clientInfo);
    if (await attempts.hasPassword(attempt, password)) return attempt;
    await attempts.fail(attempt, "password");
    throw wrongPassword(field);
  };

  const finishConfirmation = async <T>(
    attempt: LoginAttempt,
    field: string,
    work: (client: pg.ClientBase) => Promise<T>,
  ): Promise<T> => {
    const { clientInfo, countedName, userId, passwordHash } = attempt;
    const done = await attempts.withdrawOnError(attempt, () =>
      inOwnerTransaction(asOwner, async (client) => {
        const { rows } = await client.query<{ confirmed: boolean }>(
          `select auth.confirm_password($2, $3, $4, ${CLIENT_INFO_SQL}) as confirmed`,
          [clientInfoParameter(clientInfo), countedName, userId, passwordHash],
        );
        return rows[0]!.confirmed ? { value: await work(client) } : null;
      }),
    );
    if (!done) throw wrongPassword(field);
    return done.value;
  };

  return {
    async confirmPassword(userId, password, clientInfo, work) {
      const field = "password";
      return finishConfirmation(await beginConfirmation(userId, { password, field }, clientInfo), field, work);
    },

    async changePassword(userId, { currentPassword, newPassword }, clientInfo, open) {
      const [field, newField] = ["currentPassword", "newPassword"];
      checkLength(currentPassword, field);
      checkNewPassword(newPassword, { policy, field: newField });
      const attempt = await beginConfirmation(userId, { password: currentPassword, field }, clientInfo);
      const newHash = await attempts.withdrawOnError(attempt, async () => {
        checkNewPassword(newPassword, { policy, field: newField, personalWords: [attempt.countedName] });
        return passwords.hash(newPassword, requesterOf(attempt));
      });
      return finishConfirmation(attempt, field, async (client) => {
        await client.query(`select auth.change_password($2, $3, ${CLIENT_INFO_SQL})`, [
          clientInfoParameter(clientInfo),
          userId,
          newHash,
        ]);
        return open(client, userId, clientInfo);
      });
    },
  };
}

/** The status is not 401: the user is signed in and need not sign in again. */
function wrongPassword(field: string): ApiError {
  const message = "The current password is wrong.";
  return new ApiError("invalid", "INVALID_CREDENTIALS", message, { details: [{ field, message }] });
}
