import { hash } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { CodePurpose, CodeResult, MailSecrets } from "../../accounts/one-time-codes.ts";
import { digestOf } from "../../accounts/random-secrets.ts";
import { inOwnerTransaction } from "../../postgres/database/owner-pool.ts";
import { useFixture } from "../fixture.ts";
import { propertyRuns } from "../property-runs.ts";
import { from, newEmail, newPerson, type OpenAccounts, openAccounts, type Person } from "./open-accounts.ts";

const opened = useFixture(openAccounts);

type Mail = Partial<Parameters<OpenAccounts["accounts"]["codes"]["add"]>[1]>;

function send({ userId, email }: Person, purpose: CodePurpose, mail: Mail = {}): Promise<MailSecrets> {
  return inOwnerTransaction(opened.asOwner, (client) =>
    opened.accounts.codes.add(client, { purpose, userId, to: email, ...mail }),
  );
}

const useLink = (token: string, ...purposes: CodePurpose[]) =>
  opened.accounts.codes.useLink({ token, purposes, isRedirect: true }, from(), opened.accounts.tokens.open);
const useCode = (address: string, code: string, ...purposes: CodePurpose[]) =>
  opened.accounts.codes.useCode({ address, code, purposes }, from(), opened.accounts.tokens.open);
const otherThan = (code: string) => String((Number(code) + 1) % 1_000_000).padStart(6, "0");

async function accountOf({ userId }: Person) {
  const { rows } = await opened.owner.query(
    "select email, verified_email, password_hash, email_confirmed_at from auth.users where user_id = $1",
    [userId],
  );
  return rows[0];
}

async function countSessions({ userId }: Person): Promise<number> {
  const { rows } = await opened.owner.query<{ count: number }>(
    "select count(*)::integer as count from auth.refresh_tokens where user_id = $1 and revoked_at is null",
    [userId],
  );
  return rows[0]!.count;
}

async function changeEmail(person: Person): Promise<{ current: MailSecrets; new: MailSecrets; newEmail: string }> {
  const newAddress = newEmail();
  const both = { newAddress };
  return {
    current: await send(person, "email_change_current", both),
    new: await send(person, "email_change_new", { ...both, to: newAddress }),
    newEmail: newAddress,
  };
}

describe("a link and a code", () => {
  test("of one mail sign the user in once, whichever is used", async () => {
    const person = await newPerson(opened);
    for (const use of ["link", "code"]) {
      const { token, code } = await send(person, "magiclink");
      expect(code).toMatch(/^\d{6}$/);
      const spend = () =>
        use === "link" ? useLink(token, "magiclink") : useCode(person.email.toUpperCase(), code, "magiclink");
      expect(await spend()).toMatchObject({ kind: "opened", purpose: "magiclink" });
      expect(await useLink(token, "magiclink")).toEqual({ kind: "expired" });
      expect(await useCode(person.email, code, "magiclink")).toEqual({ kind: "expired" });
    }
    expect((await accountOf(person)).verified_email).toBe(person.email);
  });

  test("are stored as hashes, the code as one that needs a key", async () => {
    const person = await newPerson(opened);
    const { token, code } = await send(person, "magiclink");
    const { rows } = await opened.owner.query<{ token_hash: Buffer; code_hash: Buffer; row: string }>(
      "select token_hash, code_hash, token::text as row from auth.mail_tokens as token where user_id = $1 and purpose = 'magiclink'",
      [person.userId],
    );
    expect(rows[0]!.token_hash).toEqual(hash("sha256", token, "buffer"));
    expect(rows[0]!.row).not.toContain(code);
    const guesses = [code, person.email + code, JSON.stringify([person.email, code])];
    expect(guesses.map((guess) => hash("sha256", guess, "hex"))).not.toContain(rows[0]!.code_hash.toString("hex"));
  });

  test("end when a new mail of their purpose is sent", async () => {
    const person = await newPerson(opened);
    const first = await send(person, "magiclink");
    const second = await send(person, "magiclink");
    expect(await useLink(first.token, "magiclink")).toEqual({ kind: "expired" });
    expect(await useLink(second.token, "magiclink")).toMatchObject({ kind: "opened" });
  });

  test("count for their account and their purpose only", async () => {
    const [person, other] = [await newPerson(opened), await newPerson(opened)];
    const { token, code } = await send(person, "recovery");
    await send(other, "recovery");
    expect(await useLink(token, "magiclink", "signup")).toEqual({ kind: "expired" });
    expect(await useCode(person.email, code, "magiclink")).toEqual({ kind: "expired" });
    expect(await useCode(other.email, code, "recovery")).toEqual({ kind: "expired" });
    expect(await useCode(newEmail(), code, "recovery")).toEqual({ kind: "expired" });
    expect(await useCode(person.email, code, "recovery")).toMatchObject({ kind: "opened" });
  });

  test("end with their time, with the address, and with the account", async () => {
    const [late, moved, disabled] = [await newPerson(opened), await newPerson(opened), await newPerson(opened)];
    const mails = [];
    for (const person of [late, moved, disabled]) mails.push(await send(person, "magiclink"));
    await opened.owner.query(
      "update auth.mail_tokens set created_at = now() - interval '2 hours', expires_at = now() - interval '1 second' where user_id = $1",
      [late.userId],
    );
    await opened.owner.query("update public.users set email = $2 where id = $1", [moved.userId, newEmail()]);
    await opened.owner.query("select auth.disable_account($1, null)", [disabled.userId]);
    const results = [];
    for (const { token } of mails) results.push(await useLink(token, "magiclink"));
    expect(results).toEqual([{ kind: "expired" }, { kind: "expired" }, { kind: "disabled" }]);
    expect(await useCode(disabled.email, mails[2]!.code, "magiclink")).toEqual({ kind: "disabled" });
  });
});

describe("a code", () => {
  test("is invalid after five wrong ones, from wherever they come; its link is not", async () => {
    const person = await newPerson(opened);
    const { token, code } = await send(person, "magiclink");
    for (let attempt = 0; attempt < 5; attempt++) {
      expect(await useCode(person.email, otherThan(code), "magiclink")).toEqual({ kind: "expired" });
    }
    expect(await useCode(person.email, code, "magiclink")).toEqual({ kind: "expired" });
    expect(await useLink(token, "magiclink")).toMatchObject({ kind: "opened" });
  });

  test("counts wrong ones when they are tried at the same time", async () => {
    const person = await newPerson(opened);
    const { code } = await send(person, "magiclink");
    await Promise.all(Array.from({ length: 8 }, () => useCode(person.email, otherThan(code), "magiclink")));
    const { rows } = await opened.owner.query(
      "select attempts from auth.mail_tokens where user_id = $1 and purpose = 'magiclink'",
      [person.userId],
    );
    expect(rows).toEqual([{ attempts: 5 }]);
  });

  test("cannot be tried on and on from one place, whether or not there is an account", async () => {
    const place = from();
    for (const address of [(await newPerson(opened)).email, newEmail()]) {
      const kinds = [];
      for (let attempt = 0; attempt < 6; attempt++) {
        const entered = { address, code: "000000", purposes: ["magiclink"] as const };
        kinds.push((await opened.accounts.codes.useCode(entered, place, opened.accounts.tokens.open)).kind);
      }
      expect(kinds).toEqual(["expired", "expired", "expired", "expired", "expired", "wait"]);
    }
  });

  test("confirms a change by a signed-in user once, within five attempts", async () => {
    const person = await newPerson(opened);
    const sendCode = () => send(person, "reauthentication", { enteredWith: person.userId });
    const use = (code: string) => opened.accounts.codes.useReauthentication(person.userId, code, from());
    const { code } = await sendCode();
    expect([await use(otherThan(code)), await use(code), await use(code)]).toEqual([false, true, false]);
    const next = await sendCode();
    for (let attempt = 0; attempt < 5; attempt++) expect(await use(otherThan(next.code))).toBe(false);
    expect(await use(next.code)).toBe(false);
  });
});

describe("a link to set a password", () => {
  test("ends the password and the sign-ins from before the address was verified, which may be somebody else's", async () => {
    const person = await newPerson(opened);
    await inOwnerTransaction(opened.asOwner, (client) => opened.accounts.tokens.open(client, person.userId, from()));
    const { token } = await send(person, "recovery");
    expect(await useLink(token, "recovery")).toMatchObject({ kind: "opened" });
    expect(await accountOf(person)).toMatchObject({ password_hash: null, verified_email: person.email });
    expect(await countSessions(person)).toBe(1);
  });

  test("keeps the password of a verified account until a new one is set, which ends other links", async () => {
    const person = await newPerson(opened);
    await useLink((await send(person, "signup")).token, "signup");
    const [recovery, magic] = [await send(person, "recovery"), await send(person, "magiclink")];
    expect(await useLink(recovery.token, "recovery")).toMatchObject({ kind: "opened" });
    expect((await accountOf(person)).password_hash).not.toBeNull();
    await opened.owner.query("select auth.set_password($1, '$new')", [person.userId]);
    expect(await useLink(magic.token, "magiclink")).toEqual({ kind: "expired" });
  });
});

describe("a change of address", () => {
  test.each([["current", "new"] as const, ["new", "current"] as const])(
    "that the %s side and then the %s side confirm changes it, and signs in",
    async (first, second) => {
      const person = await newPerson(opened);
      const change = await changeEmail(person);
      expect(await useLink(change[first].token, "email_change_current", "email_change_new")).toEqual({ kind: "half" });
      expect(await useLink(change[first].token, "email_change_current", "email_change_new")).toEqual({
        kind: "expired",
      });
      expect((await accountOf(person)).email).toBe(person.email);
      const address = second === "new" ? change.newEmail : person.email;
      const result = await useCode(address, change[second].code, "email_change_current", "email_change_new");
      expect(result).toMatchObject({ kind: "opened" });
      expect(await accountOf(person)).toMatchObject({ email: change.newEmail, verified_email: change.newEmail });
    },
  );

  test("to an address that two users change to is identified by the code", async () => {
    const people = [await newPerson(opened), await newPerson(opened)];
    const newAddress = newEmail();
    const mails = [];
    for (const person of people) mails.push(await send(person, "email_change_new", { to: newAddress, newAddress }));
    expect(await useCode(newAddress, mails[0]!.code, "email_change_new")).toMatchObject({ kind: "opened" });
    expect((await accountOf(people[0]!)).email).toBe(newAddress);
    await expect(useLink(mails[1]!.token, "email_change_new")).rejects.toMatchObject({ code: "TAKEN" });
  });
});

describe("a sign-in that ends with a code for tokens", () => {
  const verifier = "a-verifier-of-at-least-forty-three-characters";
  const s256 = { challenge: hash("sha256", verifier, "base64url"), method: "s256" } as const;

  async function finishFlow(person: Person, codeChallenge: Parameters<typeof beginFlow>[1]): Promise<string> {
    const { token } = await send(person, "magiclink", { flowId: await beginFlow(person, codeChallenge) });
    expect(token).toMatch(/^pkce_/);
    const result = await useLink(token, "magiclink");
    expect(result).toMatchObject({ kind: "flow" });
    return (result as Extract<CodeResult<unknown>, { kind: "flow" }>).code;
  }

  const beginFlow = (
    { userId }: Person,
    codeChallenge: { readonly challenge: string; readonly method: "s256" | "plain" },
  ) =>
    inOwnerTransaction(opened.asOwner, (client) =>
      opened.accounts.flows.begin(client, { codeChallenge, method: "magiclink", userId }),
    );

  const exchange = (code: string, sent = verifier) =>
    opened.accounts.flows.exchange({ code, verifier: sent }, from(), opened.accounts.tokens.open, async () => {});

  test.each([s256, { challenge: verifier, method: "plain" } as const])(
    "is exchanged once, with the verifier of its client ($method)",
    async (codeChallenge) => {
      const code = await finishFlow(await newPerson(opened), codeChallenge);
      expect(await exchange("another code")).toEqual({ kind: "absent" });
      expect(await exchange(code, `${verifier}!`)).toEqual({ kind: "verifier" });
      expect(await exchange(code)).toMatchObject({ kind: "opened" });
      expect(await exchange(code)).toEqual({ kind: "absent" });
    },
  );

  test("expires after some minutes, with a new password, and with the account", async () => {
    const people = [await newPerson(opened), await newPerson(opened), await newPerson(opened)];
    const codes: string[] = [];
    for (const person of people) codes.push(await finishFlow(person, s256));
    await opened.owner.query(
      "update auth.flow_states set created_at = now() - interval '1 hour', expires_at = now() - interval '1 second' where user_id = $1",
      [people[0]!.userId],
    );
    await opened.owner.query("select auth.set_password($1, '$new')", [people[1]!.userId]);
    await opened.owner.query("select auth.disable_account($1, null)", [people[2]!.userId]);
    const kinds = [];
    for (const code of codes) kinds.push((await exchange(code)).kind);
    expect(kinds).toEqual(["expired", "absent", "disabled"]);
  });

  test("is not needed by a page of the application that uses the link", async () => {
    const person = await newPerson(opened);
    const { token } = await send(person, "magiclink", { flowId: await beginFlow(person, s256) });
    const link = { token, purposes: ["magiclink"], isRedirect: false } as const;
    const result = await opened.accounts.codes.useLink(link, from(), opened.accounts.tokens.open);
    expect(result).toMatchObject({ kind: "opened" });
  });

  test("cannot be completed by a link once it has expired", async () => {
    const person = await newPerson(opened);
    const { token } = await send(person, "magiclink", { flowId: await beginFlow(person, s256) });
    await opened.owner.query("delete from auth.flow_states where user_id = $1", [person.userId]);
    expect(await useLink(token, "magiclink")).toEqual({ kind: "flow_expired" });
  });

  test("that two requests exchange at the same time opens one session", async () => {
    const person = await newPerson(opened);
    await repeat(async () => {
      const code = await finishFlow(person, s256);
      const before = await countSessions(person);
      const kinds = (await Promise.all([exchange(code), exchange(code)])).map(({ kind }) => kind);
      expect(kinds.sort()).toEqual(["absent", "opened"]);
      expect(await countSessions(person)).toBe(before + 1);
    });
  });
});

describe("at the same time", () => {
  test("a link and its code, or the link twice, open one session", async () => {
    let person = await newPerson(opened);
    await repeat(async (round) => {
      // A wrong code counts as an attempt, of which an account has a hundred.
      if (round % 100 === 0) person = await newPerson(opened);
      const { token, code } = await send(person, "magiclink");
      const before = await countSessions(person);
      const second = round % 2 === 0 ? useLink(token, "magiclink") : useCode(person.email, code, "magiclink");
      const kinds = (await Promise.all([useLink(token, "magiclink"), second])).map(({ kind }) => kind);
      expect(kinds.sort()).toEqual(["expired", "opened"]);
      expect(await countSessions(person)).toBe(before + 1);
    });
  });

  test("both sides of a change of address change it once", async () => {
    const person = await newPerson(opened);
    await repeat(async () => {
      const now = { ...person, email: (await accountOf(person)).email };
      const change = await changeEmail(now);
      const before = await countSessions(person);
      const sides = [change.current, change.new].map(({ token }) =>
        useLink(token, "email_change_current", "email_change_new"),
      );
      expect((await Promise.all(sides)).map(({ kind }) => kind).sort()).toEqual(["half", "opened"]);
      expect((await accountOf(person)).email).toBe(change.newEmail);
      expect(await countSessions(person)).toBe(before + 1);
    });
  });

  test("of a change of address and a new password by mail one counts, and no session of the other remains", async () => {
    const person = await newPerson(opened);
    let changes = 0;
    const rounds = await repeat(async (round) => {
      const { email } = await accountOf(person);
      const links = await changeEmail({ ...person, email });
      await useLink(links.current.token, "email_change_current");
      await opened.owner.query("delete from auth.mail_tokens where user_id = $1 and purpose = 'reset'", [
        person.userId,
      ]);
      const reset = await opened.accounts.emailLinks.requestReset(email, from());
      const before = await countSessions(person);
      const hashBefore = (await accountOf(person)).password_hash;
      // The hash is made before, so that either can be first.
      const setPassword = () =>
        opened.owner.query<{ user_id: string | null }>("select auth.reset_password($1, $2, null) as user_id", [
          digestOf(reset!.token),
          `$${round}`,
        ]);
      const change = () => useLink(links.new.token, "email_change_new");
      const started =
        round % 2 === 0 ? { changed: change(), reset: setPassword() } : { reset: setPassword(), changed: change() };
      const changed = await started.changed;
      const isSet = (await started.reset).rows[0]!.user_id !== null;
      const account = await accountOf(person);
      if (changed.kind === "opened") {
        changes++;
        expect(isSet).toBe(false);
        expect(account).toMatchObject({ email: links.newEmail, password_hash: hashBefore });
        expect(await countSessions(person)).toBe(before + 1);
      } else {
        expect([changed.kind, isSet]).toEqual(["expired", true]);
        expect(account.email).toBe(email);
        expect(account.password_hash).not.toBe(hashBefore);
        expect(await countSessions(person)).toBe(0);
      }
    });
    expect(changes).toBeGreaterThan(0);
    expect(changes).toBeLessThan(rounds);
  });

  test("a change of address by a link of the account page and a new password by mail do not wait for each other", async () => {
    const person = await newPerson(opened);
    await repeat(async () => {
      await opened.owner.query("delete from auth.mail_tokens where user_id = $1", [person.userId]);
      const { email } = await accountOf(person);
      const { emailLinks } = opened.accounts;
      const reset = await emailLinks.requestReset(email, from());
      const change = await inOwnerTransaction(opened.asOwner, (client) =>
        emailLinks.beginAddressChange(client, person.userId, newEmail(), from()),
      );
      const outcomes = await Promise.allSettled([
        emailLinks.changeAddress(change.token, from()),
        opened.owner
          .query<{ user_id: string | null }>("select auth.reset_password($1, '$hash', null) as user_id", [
            digestOf(reset!.token),
          ])
          .then(({ rows }) => rows[0]!.user_id ?? Promise.reject(new Error("INVALID_TOKEN"))),
      ]);
      expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
      expect(outcomes.find((outcome) => outcome.status === "rejected")!.reason).toMatchObject({
        message: expect.stringMatching(/^INVALID_TOKEN$|used before/),
      });
    });
  });
});

/** A thousand rounds in a full run. */
async function repeat(round: (index: number) => Promise<void>): Promise<number> {
  const rounds = propertyRuns(1000);
  for (let index = 0; index < rounds; index++) await round(index);
  return rounds;
}
