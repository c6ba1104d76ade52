import { inspect } from "node:util";
import jwt from "jsonwebtoken";
import { generate } from "otplib";
import { expect, test } from "vitest";
import { Administration } from "../../accounts/administration.ts";
import { toHttpError } from "../../http/http-error.ts";
import { useFixture } from "../fixture.ts";
import { from, newPerson, openAccounts, PASSWORD } from "./open-accounts.ts";

const opened = useFixture(openAccounts);

const WRONG = "Wrong-Password-1";

test("errors, responses and logs contain no password, token, code or hash", async () => {
  const { accounts, owner } = opened;
  const { userId, email } = await newPerson(opened, { username: "confidential" });
  const login = (password: string, code?: string) =>
    accounts.login({ username: email, password, code }, from(), accounts.tokens.open);
  const secrets = new Set([PASSWORD, WRONG]);
  const keep = <T>(value: T, ...told: readonly string[]): T => {
    for (const each of told) secrets.add(each);
    return value;
  };
  const errors: unknown[] = [];
  const fails = (attempt: Promise<unknown>) =>
    attempt.then(
      () => expect.unreachable(),
      (error) => errors.push(error),
    );

  const { refreshToken, accessToken } = await login(PASSWORD);
  keep(null, refreshToken, accessToken);
  const session = await accounts.login({ username: email, password: PASSWORD }, from(), accounts.sessions.open);
  const { key } = await accounts.apiKeys.create({ role: "authenticated", ownerId: userId });
  const reset = await accounts.emailLinks.requestReset(email, from());
  const verification = await accounts.emailLinks.requestVerification(userId, from());
  const { secret } = await accounts.factors.enroll(userId, from());
  const { sid } = jwt.decode(accessToken) as jwt.JwtPayload;
  const signIn = { sessionId: sid as string, sessionDigest: null };
  const { backupCodes } = await accounts.factors.enable(userId, await generate({ secret }), from(), signIn);
  keep(null, session.id, key, reset!.token, verification!.token, secret, ...backupCodes);

  const again = { name: "Eve", password: PASSWORD };
  await fails(accounts.register({ ...again, email }, from(), accounts.tokens.open));
  await fails(
    accounts.register({ ...again, email: "eve@example.org", username: "confidential" }, from(), accounts.tokens.open),
  );
  await fails(accounts.register({ ...again, email: "eve@example.org", age: 999 }, from(), accounts.tokens.open));
  await fails(
    accounts.register({ ...again, email: "eve@example.org", name: null as never }, from(), accounts.tokens.open),
  );
  await fails(login(WRONG));
  await fails(login(PASSWORD));
  await fails(login(PASSWORD, "abcd2345"));
  await fails(
    accounts.changePassword(userId, { currentPassword: WRONG, newPassword: PASSWORD }, from(), accounts.tokens.open),
  );
  await accounts.tokens.refresh(refreshToken, from());
  await fails(accounts.tokens.refresh(refreshToken, from()));
  await fails(accounts.tokens.refresh(accessToken, from()));
  await fails(accounts.tokens.refresh(`${refreshToken}x`, from()));
  await fails(accounts.factors.disable(userId, "123456", from()));
  await accounts.emailLinks.verifyEmail(verification!.token, from());
  await fails(accounts.emailLinks.verifyEmail(verification!.token, from()));
  await fails(accounts.emailLinks.resetPassword(`${reset!.token}x`, PASSWORD, from()));
  await fails(accounts.apiKeys.revoke("999999"));
  await fails(
    new Administration({ asOwner: opened.asOwner, policy: "standard" }).add({ ...again, email, role: "admin" }),
  );

  const { rows: hashes } = await owner.query<{ hash: string }>(
    "select password_hash as hash from auth.users union all select code_hash from auth.mfa_backup_codes",
  );
  keep(null, ...hashes.map(({ hash }) => hash.split("$").at(-1)!));
  const { rows: log } = await owner.query("select * from auth.audit_log");
  expect(log.length).toBeGreaterThan(10);
  expect(errors).toHaveLength(16);

  const told = [
    inspect(log, { depth: 9, maxArrayLength: null }),
    ...errors.map((error) => inspect(error, { depth: 9, showHidden: true })),
    ...errors.map((error) => JSON.stringify(toHttpError(error))),
  ];
  for (const each of secrets) for (const text of told) expect(text).not.toContain(each);
});
