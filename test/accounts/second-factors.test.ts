import { randomUUID } from "node:crypto";
import { generate } from "otplib";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { FactorType } from "../../accounts/second-factors.ts";
import { useFixture } from "../fixture.ts";
import { SoftwareAuthenticator } from "../software-authenticator.ts";
import { eventsOf, from, newPerson, openAccounts, PASSWORD, type Person } from "./open-accounts.ts";

const opened = useFixture(openAccounts);
/** The middle of a step, so that no code ends while a test looks at it. */
beforeEach(() => vi.useFakeTimers({ toFake: ["Date"], now: 1_800_000_015_000 }));
afterEach(() => vi.useRealTimers());

const nextStep = () => vi.setSystemTime(Date.now() + 30_000);
const factors = () => opened.accounts.secondFactors;
const sql = async (statement: string, ...values: unknown[]) => (await opened.owner.query(statement, values)).rows;

type SignedIn = { readonly userId: string; readonly sessionId: string; readonly refreshToken: string };

async function signIn({ username, email, userId }: Person, code?: string): Promise<SignedIn> {
  const { login, tokens } = opened.accounts;
  const pair = await login({ username: username ?? email, password: PASSWORD, code }, from(), tokens.open);
  const [session] = await sql(
    "select id from auth.token_sessions where user_id = $1 order by created_at desc limit 1",
    userId,
  );
  return { userId, sessionId: session.id, refreshToken: pair.refreshToken };
}

async function newSignIn() {
  const person = await newPerson(opened);
  return { person, signedIn: await signIn(person) };
}

const enroll = (signedIn: SignedIn, friendlyName = "", factorType: FactorType = "totp") =>
  factors().enroll(signedIn, { factorType, friendlyName, issuer: "Films" }, from());

async function newApp(signedIn: SignedIn, friendlyName = "") {
  const result = await enroll(signedIn, friendlyName);
  if (result.outcome !== "added") throw new Error(result.outcome);
  return { id: result.factor.id, ...result.totp! };
}

const HOME = from();
async function verifyCode(signedIn: SignedIn, factorId: string, code: string, challengeId?: string, clientInfo = HOME) {
  const id = challengeId ?? (await factors().challenge(signedIn.userId, factorId, HOME))!.id;
  const response = { challengeId: id, code, credential: null };
  const { tokens } = opened.accounts;
  return factors().verify(signedIn, factorId, response, clientInfo, (client) =>
    tokens.continueSignIn(client, signedIn, HOME),
  );
}

async function verifiedApp(signedIn: SignedIn, friendlyName = "") {
  const app = await newApp(signedIn, friendlyName);
  expect(await verifyCode(signedIn, app.id, await generate(app))).toMatchObject({ outcome: "passed" });
  nextStep();
  return app;
}

const levelOf = async ({ sessionId }: SignedIn) =>
  (await sql("select aal, amr from auth.token_sessions where id = $1", sessionId))[0];
const refresh = ({ refreshToken }: { refreshToken: string }) => opened.accounts.tokens.refresh(refreshToken, from());

describe("an authenticator app", () => {
  test("has a secret, its URI and a QR code that a data: URL can contain", async () => {
    const { signedIn } = await newSignIn();
    const { secret, uri, qrCodeSvg } = await newApp(signedIn, "Phone");
    expect(uri).toContain(secret);
    expect(decodeURIComponent(uri)).toContain("Films:");
    expect(qrCodeSvg).toMatch(/^<svg .*<\/svg>$/s);
    expect(qrCodeSvg).not.toContain("#");
    expect(await factors().list(signedIn.userId)).toMatchObject([
      { friendlyName: "Phone", factorType: "totp", isVerified: false },
    ]);
  });

  test("raises the sign-in to level 2 with its first code, and continues it with new tokens", async () => {
    const { person, signedIn } = await newSignIn();
    const app = await newApp(signedIn);
    const result = await verifyCode(signedIn, app.id, await generate(app));
    expect(result).toMatchObject({ outcome: "passed", opened: { refreshToken: expect.any(String) } });
    expect(await levelOf(signedIn)).toMatchObject({ aal: 2, amr: [{ method: "totp" }, { method: "password" }] });
    expect(await factors().list(signedIn.userId)).toMatchObject([{ id: app.id, isVerified: true }]);
    if (result.outcome === "passed") await expect(refresh(result.opened!)).resolves.toBeTruthy();
    await expect(signIn(person)).rejects.toMatchObject({ code: "MFA_REQUIRED" });
    expect(await eventsOf(opened, signedIn.userId)).toContain("factor.verified");
  });

  test("ends the other sign-ins that have proved the password alone", async () => {
    const { person, signedIn } = await newSignIn();
    const other = await signIn(person);
    await verifiedApp(signedIn);
    await expect(refresh(other)).rejects.toMatchObject({ code: "INVALID_TOKEN" });
  });

  test("of several is accepted at the sign-in of the documented routes, each code once", async () => {
    const { person, signedIn } = await newSignIn();
    const apps = [await verifiedApp(signedIn, "one"), await verifiedApp(signedIn, "two")];
    for (const app of apps) {
      const code = await generate(app);
      await expect(signIn(person, code)).resolves.toBeTruthy();
      await expect(signIn(person, code)).rejects.toMatchObject({ code: "INVALID_CODE" });
      expect(await verifyCode(signedIn, app.id, code)).toEqual({ outcome: "code" });
    }
  });

  test("of several is disabled with the others by the documented route", async () => {
    const { person, signedIn } = await newSignIn();
    const app = await verifiedApp(signedIn, "one");
    await verifiedApp(signedIn, "two");
    await expect(opened.accounts.factors.enroll(person.userId, from())).rejects.toMatchObject({ code: "TAKEN" });
    await opened.accounts.factors.disable(person.userId, await generate(app), from());
    expect(await factors().list(person.userId)).toEqual([]);
    expect(await levelOf(signedIn)).toMatchObject({ aal: 1 });
    await expect(signIn(person)).resolves.toBeTruthy();
  });

  test("refuses wrong codes, which count as failed sign-ins", async () => {
    const { signedIn } = await newSignIn();
    const app = await newApp(signedIn);
    const { id } = (await factors().challenge(signedIn.userId, app.id, HOME))!;
    for (const code of ["000", "", "abcdefgh", "12345678", "x"]) {
      expect(await verifyCode(signedIn, app.id, code, id)).toEqual({ outcome: "code" });
    }
    await expect(verifyCode(signedIn, app.id, await generate(app), id)).rejects.toMatchObject({ kind: "rateLimited" });
  });
});

describe("the enrolment of a second factor", () => {
  test("refuses a name that is taken, and more than ten factors", async () => {
    const { signedIn } = await newSignIn();
    for (let count = 0; count < 10; count++) {
      expect(await enroll(signedIn, `${count}`)).toMatchObject({ outcome: "added" });
      expect(await enroll(signedIn, `${count}`)).toEqual({ outcome: "name_taken" });
    }
    expect(await enroll(signedIn, "ten")).toEqual({ outcome: "too_many" });
  });

  test("requires level 2 if another factor is verified", async () => {
    const { person, signedIn } = await newSignIn();
    const app = await verifiedApp(signedIn, "one");
    await sql("update auth.token_sessions set aal = 1 where id = $1", signedIn.sessionId);
    expect(await enroll(signedIn, "two")).toEqual({ outcome: "level" });
    expect(await factors().remove(signedIn, app.id, from())).toBe("level");
    expect(await enroll({ ...signedIn, sessionId: randomUUID() }, "two")).toEqual({ outcome: "level" });
    const { signedIn: other } = await newSignIn();
    expect(await enroll({ ...other, userId: person.userId }, "two")).toEqual({ outcome: "level" });
  });

  test("deletes factors that were not verified within five minutes, and those that a verification replaces", async () => {
    const { signedIn } = await newSignIn();
    const old = await newApp(signedIn, "old");
    await sql("update auth.mfa_factors set created_at = now() - interval '6 minutes' where id = $1", old.id);
    await newApp(signedIn, "new");
    expect((await factors().list(signedIn.userId)).map(({ friendlyName }) => friendlyName)).toEqual(["new"]);
    await verifiedApp(signedIn, "newest");
    expect((await factors().list(signedIn.userId)).map(({ friendlyName }) => friendlyName)).toEqual(["newest"]);
  });
});

describe("a challenge of a second factor", () => {
  test("verifies once, also if it is used concurrently", async () => {
    const { signedIn } = await newSignIn();
    const app = await newApp(signedIn);
    const { id } = (await factors().challenge(signedIn.userId, app.id, HOME))!;
    const code = await generate(app);
    const results = await Promise.all(Array.from({ length: 4 }, () => verifyCode(signedIn, app.id, code, id)));
    expect(results.map(({ outcome }) => outcome).sort()).toEqual(["challenge", "challenge", "challenge", "passed"]);
    const live = await sql(
      "select from auth.refresh_tokens where user_id = $1 and rotated_at is null and revoked_at is null",
      signedIn.userId,
    );
    expect(live).toHaveLength(1);
  });

  test("verifies a code once, also with two challenges concurrently", async () => {
    const { signedIn } = await newSignIn();
    const app = await newApp(signedIn);
    const code = await generate(app);
    const results = await Promise.all([1, 2, 3].map(() => verifyCode(signedIn, app.id, code)));
    expect(results.map(({ outcome }) => outcome).sort()).toEqual(["code", "code", "passed"]);
  });

  test("is refused from another address, when it has expired, and for another factor or user", async () => {
    const { signedIn } = await newSignIn();
    const [one, two] = [await newApp(signedIn, "one"), await newApp(signedIn, "two")];
    const { id } = (await factors().challenge(signedIn.userId, one.id, HOME))!;
    const code = await generate(one);
    expect(await verifyCode(signedIn, one.id, code, id, from())).toEqual({ outcome: "address" });
    expect(await verifyCode(signedIn, two.id, await generate(two), id)).toEqual({ outcome: "challenge" });
    expect(await verifyCode(signedIn, one.id, code, randomUUID())).toEqual({ outcome: "challenge" });
    expect(await verifyCode(signedIn, one.id, code, "7")).toEqual({ outcome: "challenge" });
    const { signedIn: other } = await newSignIn();
    expect(await verifyCode(other, one.id, code, id)).toEqual({ outcome: "missing" });
    expect(await factors().challenge(other.userId, one.id, HOME)).toBeNull();
    expect(await factors().challenge(signedIn.userId, "7", HOME)).toBeNull();
    await sql("update auth.mfa_challenges set expires_at = now() where id = $1", id);
    expect(await verifyCode(signedIn, one.id, code, id)).toEqual({ outcome: "expired" });
  });

  test("is refused after its sign-in has ended, and then changes nothing", async () => {
    const { signedIn } = await newSignIn();
    const app = await newApp(signedIn);
    const ended = { ...signedIn, sessionId: randomUUID() };
    expect(await verifyCode(ended, app.id, await generate(app))).toEqual({ outcome: "session" });
    expect(await factors().list(signedIn.userId)).toMatchObject([{ isVerified: false }]);
  });
});

describe("a security key", () => {
  const respond = async (signedIn: SignedIn, factorId: string, authenticator: SoftwareAuthenticator) => {
    const { id, keyRequest } = (await factors().challenge(signedIn.userId, factorId, HOME))!;
    const credential =
      keyRequest!.type === "create"
        ? authenticator.create(keyRequest!.options)
        : authenticator.get(keyRequest!.options);
    const response = { challengeId: id, code: "", credential };
    const verify = () => factors().verify(signedIn, factorId, response, HOME, async () => "open");
    return { type: keyRequest!.type, result: await verify(), verify };
  };
  const newKey = async (signedIn: SignedIn) => {
    const result = await enroll(signedIn, "Key", "webauthn");
    if (result.outcome !== "added") throw new Error(result.outcome);
    return result.factor.id;
  };

  test("is registered by its first challenge and proves possession by the later ones", async () => {
    const { signedIn } = await newSignIn();
    const factorId = await newKey(signedIn);
    const authenticator = new SoftwareAuthenticator({ verifiesUser: false });
    const registered = await respond(signedIn, factorId, authenticator);
    expect([registered.type, registered.result]).toEqual(["create", { outcome: "passed", opened: "open" }]);
    expect(await levelOf(signedIn)).toMatchObject({
      aal: 2,
      amr: [{ method: "mfa/webauthn" }, { method: "password" }],
    });
    const used = await respond(signedIn, factorId, authenticator);
    expect([used.type, used.result.outcome]).toEqual(["request", "passed"]);
    expect(await used.verify()).toEqual({ outcome: "challenge" });
    expect((await respond(signedIn, factorId, new SoftwareAuthenticator())).result).toEqual({ outcome: "code" });
    authenticator.counter = 0;
    expect((await respond(signedIn, factorId, authenticator)).result, "a copy").toEqual({ outcome: "code" });
  });

  test("is no passkey of the list, and ends with its factor", async () => {
    const { person, signedIn } = await newSignIn();
    const factorId = await newKey(signedIn);
    await respond(signedIn, factorId, new SoftwareAuthenticator());
    expect(await opened.accounts.passkeys.list(person.userId)).toEqual([]);
    expect(await factors().remove(signedIn, factorId, from())).toBe("removed");
    expect(await sql("select from auth.passkeys where user_id = $1", person.userId)).toEqual([]);
    expect(await levelOf(signedIn)).toMatchObject({ aal: 1, amr: [{ method: "password" }] });
  });

  test("that is the only factor makes the sign-in of the documented routes require one", async () => {
    const { person, signedIn } = await newSignIn();
    await respond(signedIn, await newKey(signedIn), new SoftwareAuthenticator());
    await expect(signIn(person)).rejects.toMatchObject({ code: "MFA_REQUIRED" });
    await expect(signIn(person, "123456")).rejects.toMatchObject({ code: "INVALID_CODE" });
  });
});
