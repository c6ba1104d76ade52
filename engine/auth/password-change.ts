import { type AsOwner, inTransaction } from "../database/as-owner.ts";
import { ApiError } from "../errors.ts";
import type { Attempts } from "./attempts.ts";
import type { Opening } from "./login.ts";
import { checkLength, checkNewPassword, type PasswordPolicy } from "./password-policy.ts";
import type { Passwords } from "./passwords.ts";
import { SENDER, type Sender, senderValue } from "./sender.ts";

export type PasswordChange = { readonly currentPassword: string; readonly newPassword: string };

/** Whatever the user is signed in by ends; `open` begins what takes the place of what the request came by. */
export type ChangePassword = <T>(
  userId: string,
  change: PasswordChange,
  sender: Sender,
  open: Opening<T>,
) => Promise<T>;

type Options = {
  readonly asOwner: AsOwner;
  readonly passwords: Passwords;
  readonly attempts: Attempts;
  readonly policy: PasswordPolicy;
};

export function makeChangePassword({ asOwner, passwords, attempts, policy }: Options): ChangePassword {
  return async (userId, { currentPassword, newPassword }, sender, open) => {
    checkLength(currentPassword, "currentPassword");
    checkNewPassword(newPassword, { policy, field: "newPassword" });
    const attempt = await attempts.beginFor(userId, sender);
    if (!(await attempts.hasPassword(attempt, currentPassword))) {
      await attempts.fail(attempt, "password");
      throw wrongPassword();
    }
    const newHash = await attempts.orGiveBack(attempt, async () => {
      checkNewPassword(newPassword, { policy, field: "newPassword", known: [attempt.countedName] });
      return passwords.hash(newPassword);
    });
    const opened = await inTransaction(asOwner, async (client) => {
      const { rows } = await client.query<{ changed: boolean }>(
        `select auth.change_password($2, $3, $4, $5, ${SENDER}) as changed`,
        [senderValue(sender), attempt.countedName, userId, attempt.passwordHash, newHash],
      );
      return rows[0]!.changed ? { value: await open(client, userId, sender) } : null;
    });
    if (!opened) throw wrongPassword();
    return opened.value;
  };
}

/** Not 401: who asks is signed in, and need not sign in again. */
function wrongPassword(): ApiError {
  const message = "The current password is wrong.";
  return new ApiError(400, "INVALID_CREDENTIALS", message, { details: [{ field: "currentPassword", message }] });
}
