import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { SoftwareAuthenticator } from "../software-authenticator.ts";
import { eventsOf, from, newPerson, openAccounts } from "./open-accounts.ts";

const opened = useFixture(openAccounts);

const passkeys = () => opened.accounts.passkeys;
const sql = (statement: string, ...values: unknown[]) => opened.owner.query(statement, values);

async function register(userId: string, authenticator = new SoftwareAuthenticator()) {
  const { challengeId, options } = await passkeys().beginRegistration(userId);
  const credential = authenticator.create(options);
  const passkey = await passkeys().finishRegistration(userId, { challengeId, credential }, from());
  return { passkey, authenticator };
}

async function assertion(authenticator: SoftwareAuthenticator) {
  const { challengeId, options } = await passkeys().beginSignIn();
  return { challengeId, credential: authenticator.get(options) };
}

const signIn = (response: Parameters<ReturnType<typeof passkeys>["finishSignIn"]>[0]) =>
  passkeys().finishSignIn(response, from(), async (_client, userId) => userId);

describe("a passkey", () => {
  test("signs in the user who registered it", async () => {
    const { userId } = await newPerson(opened);
    const { passkey, authenticator } = await register(userId);
    expect(passkey).toMatchObject({ userId, factorId: null, transports: ["usb"], lastUsedAt: null });
    expect(await signIn(await assertion(authenticator))).toBe(userId);
    const [used] = await passkeys().list(userId);
    expect(used).toMatchObject({ id: passkey.id, counter: "1", lastUsedAt: expect.any(Date) });
    expect(await eventsOf(opened, userId)).toEqual(["account.created", "passkey.added", "passkey.signed_in"]);
  });

  test("must be discoverable and verify its user", async () => {
    const { userId } = await newPerson(opened);
    const { options } = await passkeys().beginRegistration(userId);
    expect(options.authenticatorSelection).toMatchObject({ residentKey: "required", userVerification: "required" });
    expect(options.rp.id).toBe("localhost");
    const unverified = new SoftwareAuthenticator({ verifiesUser: false });
    await expect(register(userId, unverified)).rejects.toMatchObject({ code: "PASSKEY_REFUSED" });
    const request = await passkeys().beginSignIn();
    expect(request.options).toMatchObject({ userVerification: "required", allowCredentials: [] });
  });

  test("is refused from another origin, for another domain, and with a foreign signature", async () => {
    const { userId } = await newPerson(opened);
    const { authenticator } = await register(userId);
    for (const elsewhere of [{ origin: "https://localhost.example.org" }, { rpId: "example.org" }, {}]) {
      const forger = new SoftwareAuthenticator(elsewhere);
      forger.userHandle = authenticator.userHandle;
      const { challengeId, options } = await passkeys().beginSignIn();
      const credential = { ...forger.get(options), id: authenticator.get(options).id };
      await expect(signIn({ challengeId, credential })).rejects.toMatchObject({ code: "PASSKEY_REFUSED" });
      if (Object.keys(elsewhere).length > 0)
        await expect(register(userId, new SoftwareAuthenticator(elsewhere))).rejects.toMatchObject({
          code: "PASSKEY_REFUSED",
        });
    }
    expect(await signIn(await assertion(authenticator))).toBe(userId);
  });

  test("is refused for a user who has not registered it", async () => {
    const [ada, bob] = [await newPerson(opened), await newPerson(opened)];
    const { authenticator } = await register(ada.userId);
    const { authenticator: other } = await register(bob.userId);
    authenticator.userHandle = other.userHandle;
    await expect(signIn(await assertion(authenticator))).rejects.toMatchObject({ code: "PASSKEY_REFUSED" });
  });

  test.each([null, undefined, 7, "text", [], {}, { id: "x" }, { id: "x", response: {} }, { id: "\0", response: null }])(
    "is refused when the response is %j",
    async (credential) => {
      const { userId } = await newPerson(opened);
      const registration = await passkeys().beginRegistration(userId);
      const { challengeId } = await passkeys().beginSignIn();
      await expect(signIn({ challengeId, credential })).rejects.toMatchObject({ code: "PASSKEY_REFUSED" });
      const sent = { challengeId: registration.challengeId, credential };
      await expect(passkeys().finishRegistration(userId, sent, from())).rejects.toMatchObject({
        code: "PASSKEY_REFUSED",
      });
    },
  );

  test("whose counter does not increase was copied, and is refused", async () => {
    const { userId } = await newPerson(opened);
    const { authenticator } = await register(userId);
    await signIn(await assertion(authenticator));
    authenticator.counter = 0;
    await expect(signIn(await assertion(authenticator))).rejects.toMatchObject({ code: "PASSKEY_REFUSED" });
    authenticator.counter = 5;
    expect(await signIn(await assertion(authenticator))).toBe(userId);
  });

  test("cannot be registered twice, and an account has at most ten", async () => {
    const { userId } = await newPerson(opened);
    const { authenticator } = await register(userId);
    await expect(register(userId, authenticator)).rejects.toMatchObject({ code: "PASSKEY_EXISTS" });
    for (let count = 1; count < 10; count++) await register(userId);
    await expect(register(userId)).rejects.toMatchObject({ code: "TOO_MANY_PASSKEYS" });
  });

  test("does not take the id of another user's passkey, which still signs in", async () => {
    const [ada, bob] = [await newPerson(opened), await newPerson(opened)];
    const { authenticator } = await register(ada.userId);
    const { credential } = await assertion(authenticator);
    const copy = new SoftwareAuthenticator({ id: Buffer.from(credential.id, "base64url") });
    await expect(register(bob.userId, copy)).rejects.toMatchObject({ code: "PASSKEY_EXISTS" });
    copy.userHandle = authenticator.userHandle;
    copy.counter = 100;
    await expect(signIn(await assertion(copy))).rejects.toMatchObject({ code: "PASSKEY_REFUSED" });
    expect(await signIn(await assertion(authenticator))).toBe(ada.userId);
  });

  test("is refused if nobody has touched it, and for a response of another ceremony", async () => {
    const { userId } = await newPerson(opened);
    const { authenticator } = await register(userId);
    const untouched = new SoftwareAuthenticator({ isTouched: false });
    await expect(register(userId, untouched)).rejects.toMatchObject({ code: "PASSKEY_REFUSED" });

    const { challengeId, credential } = await assertion(authenticator);
    const clientData = JSON.parse(Buffer.from(credential.response.clientDataJSON, "base64url").toString());
    const clientDataJSON = Buffer.from(JSON.stringify({ ...clientData, type: "webauthn.create" })).toString(
      "base64url",
    );
    const response = {
      challengeId,
      credential: { ...credential, response: { ...credential.response, clientDataJSON } },
    };
    await expect(signIn(response)).rejects.toMatchObject({ code: "PASSKEY_REFUSED" });
  });

  test("does not sign in to a disabled account", async () => {
    const { userId } = await newPerson(opened);
    const { authenticator } = await register(userId);
    await sql("select auth.disable_account($1, null)", userId);
    await expect(signIn(await assertion(authenticator))).rejects.toMatchObject({ code: "ACCOUNT_DISABLED" });
  });

  test("can be renamed and removed by its user only", async () => {
    const [ada, bob] = [await newPerson(opened), await newPerson(opened)];
    const { passkey, authenticator } = await register(ada.userId);
    expect(await passkeys().rename(ada.userId, passkey.id, "Laptop")).toMatchObject({ friendlyName: "Laptop" });
    for (const [userId, id] of [
      [bob.userId, passkey.id],
      [ada.userId, randomUUID()],
      [ada.userId, "7"],
    ] as const) {
      await expect(passkeys().rename(userId, id, "Mine")).rejects.toMatchObject({ code: "PASSKEY_NOT_FOUND" });
      await expect(passkeys().remove(userId, id, from())).rejects.toMatchObject({ code: "PASSKEY_NOT_FOUND" });
    }
    await passkeys().remove(ada.userId, passkey.id, from());
    expect(await passkeys().list(ada.userId)).toEqual([]);
    await expect(signIn(await assertion(authenticator))).rejects.toMatchObject({ code: "PASSKEY_REFUSED" });
  });

  test("ends with its account", async () => {
    const { userId } = await newPerson(opened);
    await register(userId);
    await sql("delete from public.users where id = $1", userId);
    expect((await sql("select from auth.passkeys where user_id = $1", userId)).rowCount).toBe(0);
  });
});

describe("a challenge of a passkey", () => {
  test("is used once, also by concurrent sign-ins", async () => {
    const { userId } = await newPerson(opened);
    const { authenticator } = await register(userId);
    const response = await assertion(authenticator);
    const results = await Promise.allSettled(Array.from({ length: 5 }, () => signIn(response)));
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const result of results) {
      if (result.status === "rejected") expect(result.reason).toMatchObject({ code: "PASSKEY_CHALLENGE_NOT_FOUND" });
    }
  });

  test("is refused for another purpose, for another user, and when it has expired", async () => {
    const [ada, bob] = [await newPerson(opened), await newPerson(opened)];
    const { authenticator } = await register(ada.userId);
    const registration = await passkeys().beginRegistration(ada.userId);
    const credential = new SoftwareAuthenticator().create(registration.options);
    const response = { challengeId: registration.challengeId, credential };
    const missing = { code: "PASSKEY_CHALLENGE_NOT_FOUND" };
    await expect(signIn(response)).rejects.toMatchObject(missing);
    await expect(passkeys().finishRegistration(bob.userId, response, from())).rejects.toMatchObject(missing);
    const { challengeId } = await passkeys().beginSignIn();
    const forSignIn = { challengeId, credential };
    await expect(passkeys().finishRegistration(ada.userId, forSignIn, from())).rejects.toMatchObject(missing);
    await expect(signIn({ challengeId: "7", credential })).rejects.toMatchObject(missing);

    const late = await assertion(authenticator);
    await sql("update auth.mfa_challenges set expires_at = now() where id = $1", late.challengeId);
    await expect(signIn(late)).rejects.toMatchObject({ code: "PASSKEY_CHALLENGE_EXPIRED" });
  });

  test("is deleted some time after it has expired", async () => {
    const { challengeId } = await passkeys().beginSignIn();
    await sql("update auth.mfa_challenges set expires_at = now() - interval '1 hour' where id = $1", challengeId);
    await passkeys().beginSignIn();
    expect((await sql("select from auth.mfa_challenges where id = $1", challengeId)).rowCount).toBe(0);
  });
});
