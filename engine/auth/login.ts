import type pg from "pg";
import { type AsOwner, inTransaction } from "../database/as-owner.ts";
import { ApiError } from "../errors.ts";
import type { Attempt, Attempts, Proof } from "./attempts.ts";
import { checkLength } from "./password-policy.ts";
import type { Passwords } from "./passwords.ts";
import { accountDisabled, codeRequired, wrongCodeAtLogin, wrongCredentials } from "./refusals.ts";
import { SENDER, type Sender, senderValue } from "./sender.ts";

export type Credentials = {
  /** Or the e-mail address. */
  readonly username: string;
  readonly password: string;
  /** Of the authenticator app, or a backup code. */
  readonly code?: string | null | undefined;
};

/** Begins what the user is signed in by, in the transaction that found the user to be who they say. */
export type Opening<T> = (client: pg.ClientBase, userId: string, sender: Sender) => Promise<T>;

export type Login = <T>(credentials: Credentials, sender: Sender, open: Opening<T>) => Promise<T>;

type Outcome = "passed" | "password" | "disabled" | "code_missing" | "code";

/** No name and no e-mail address is longer. */
const LONGEST_NAME = 254;
const NO_PROOF: Proof = { step: null, backupCodeHash: null };
const REFUSALS: Readonly<Record<Exclude<Outcome, "passed">, () => ApiError>> = {
  password: wrongCredentials,
  disabled: accountDisabled,
  code_missing: codeRequired,
  code: wrongCodeAtLogin,
};

/** What the parts of a sign-in have in common, whether they come in one request or in two. */
export type LoginSteps = {
  /** Counts an attempt; a wrong password is refused. Each step is made for users and for nobody alike. */
  begin(credentials: Pick<Credentials, "username" | "password">, sender: Sender): Promise<Attempt>;
  /** The same for who has shown the password a moment ago: `isKnown` says whether the account still has that one. */
  resume(username: string, isKnown: (attempt: Attempt) => boolean, sender: Sender): Promise<Attempt>;
  finish<T>(attempt: Attempt, shown: Shown, open: Opening<T>): Promise<Finished<T>>;
};

type Shown = { readonly code: Credentials["code"]; readonly password: string | null };
type Finished<T> =
  | { readonly outcome: "passed"; readonly opened: T }
  | { readonly outcome: Exclude<Outcome, "passed"> };

export function makeLoginSteps(asOwner: AsOwner, passwords: Passwords, attempts: Attempts): LoginSteps {
  const beginIf = async (
    username: string,
    isKnown: (attempt: Attempt) => boolean | Promise<boolean>,
    sender: Sender,
  ): Promise<Attempt> => {
    checkName(username);
    const attempt = await attempts.begin(username, sender);
    if (await isKnown(attempt)) return attempt;
    await attempts.fail(attempt, "password");
    throw wrongCredentials();
  };

  const renewedHash = (attempt: Attempt, password: string): Promise<string | null> =>
    attempts.orGiveBack(attempt, async () =>
      passwords.isOutdated(attempt.passwordHash!) ? passwords.hash(password) : null,
    );

  const proofOf = async (attempt: Attempt, code: Credentials["code"]): Promise<Proof> => {
    if (attempt.factorSecret === null || !code) return NO_PROOF;
    const proof = await attempts.readCode(attempt, code);
    if (proof) return proof;
    await attempts.fail(attempt, "code");
    throw wrongCodeAtLogin();
  };

  return {
    async begin({ username, password }, sender) {
      checkLength(password, "password");
      return beginIf(username, (attempt) => attempts.hasPassword(attempt, password), sender);
    },
    resume: beginIf,
    async finish(attempt, { code, password }, open) {
      const proof = await proofOf(attempt, code);
      const newHash = password === null ? null : await renewedHash(attempt, password);
      return inTransaction(asOwner, async (client) => {
        const outcome = await pass(client, attempt, proof);
        if (outcome !== "passed") return { outcome };
        if (newHash) await renewHash(client, attempt, newHash);
        return { outcome, opened: await open(client, attempt.userId!, attempt.sender) };
      });
    },
  };
}

export function makeLogin({ begin, finish }: LoginSteps): Login {
  return async ({ username, password, code }, sender, open) => {
    const attempt = await begin({ username, password }, sender);
    return orRefuse(await finish(attempt, { code, password }, open));
  };
}

export function orRefuse<T>(finished: Finished<T>): T {
  if (finished.outcome === "passed") return finished.opened;
  throw REFUSALS[finished.outcome]();
}

async function pass(client: pg.ClientBase, attempt: Attempt, { step, backupCodeHash }: Proof): Promise<Outcome> {
  const { sender, countedName, userId, passwordHash, factorSecret } = attempt;
  const { rows } = await client.query<{ outcome: Outcome }>(
    `select auth.pass_login($2, $3, $4, $5, $6, $7, ${SENDER}) as outcome`,
    [senderValue(sender), countedName, userId, passwordHash, factorSecret, step, backupCodeHash],
  );
  return rows[0]!.outcome;
}

async function renewHash(client: pg.ClientBase, { userId, passwordHash }: Attempt, newHash: string): Promise<void> {
  await client.query("select auth.renew_password_hash($1, $2, $3)", [userId, passwordHash, newHash]);
}

function checkName(username: string): void {
  if (username.length <= LONGEST_NAME) return;
  const message = `A user name has at most ${LONGEST_NAME} characters.`;
  throw new ApiError(400, "VALIDATION_ERROR", message, { details: [{ field: "username", message }] });
}
