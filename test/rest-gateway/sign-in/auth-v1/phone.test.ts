import { createHmac, randomInt } from "node:crypto";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../../../postgres/client/with-client.ts";
import { useDatabase } from "../../../database.ts";
import { useFixture } from "../../../fixture.ts";
import { useService } from "../../../serve.ts";
import { until } from "../../../until.ts";
import { makeClient, PASSWORD } from "./auth-client.ts";

const KEY = Buffer.alloc(32, 7);

type SentText = {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly message: { readonly user: { readonly phone: string }; readonly sms: { readonly otp: string } };
};

const texts: SentText[] = [];
const gateway = useFixture(() =>
  createServer(async (request, response) => {
    const body = await text(request);
    texts.push({ headers: request.headers, body, message: JSON.parse(body) });
    response.end("{}");
  }),
);
beforeAll(async () => {
  await new Promise<void>((resolve) => gateway.listen(0, "127.0.0.1", resolve));
});
const database = useDatabase();
const settings = () => ({
  SMS_WEBHOOK_URL: `http://127.0.0.1:${(gateway.address() as AddressInfo).port}/texts`,
  SMS_WEBHOOK_SECRET: `v1,whsec_${KEY.toString("base64")}`,
  AUTH_AUTOCONFIRM: "false",
});
const service = useService({ database, settings });
/** Accounts count as confirmed at once. */
const lenient = useService({ database, settings: () => ({ ...settings(), AUTH_AUTOCONFIRM: "true" }) });
/** Codes may be requested without a pause. */
const unhurried = useService({ database, settings: () => ({ ...settings(), MAIL_INTERVAL_SECONDS: "0" }) });

const newPhone = () => `1555${randomInt(1_000_000, 9_999_999)}`;
const newClient = (at = service) => makeClient(at.url);

async function receive(phone: string): Promise<SentText> {
  await until(() => texts.some(({ message }) => message.user.phone === phone));
  return texts.find(({ message }) => message.user.phone === phone)!;
}

describe("with a gateway for text messages, a phone number", () => {
  test("signs a new user in by a code, once", async () => {
    const [client, phone] = [newClient(), newPhone()];
    const { error } = await client.auth.signInWithOtp({ phone: `+${phone}`, options: { data: { color: "green" } } });
    expect(error).toBeNull();
    const { otp: token } = (await receive(phone)).message.sms;
    const { data, error: refusal } = await client.auth.verifyOtp({ phone, token, type: "sms" });
    expect(refusal).toBeNull();
    expect(data.user).toMatchObject({
      phone,
      email: "",
      phone_confirmed_at: expect.any(String),
      app_metadata: { provider: "phone", providers: ["phone"] },
      user_metadata: { color: "green" },
      identities: [{ provider: "phone" }],
    });
    expect((await client.auth.getClaims()).data!.claims).toMatchObject({ phone, email: "", amr: [{ method: "otp" }] });
    const again = await newClient().auth.verifyOtp({ phone, token, type: "sms" });
    expect(again.error).toMatchObject({ code: "otp_expired" });
  });

  test("signs up with a password, which is confirmed by a code", async () => {
    const [client, phone] = [newClient(), newPhone()];
    const signedUp = await client.auth.signUp({ phone, password: PASSWORD, options: { data: { color: "red" } } });
    expect(signedUp.error).toBeNull();
    expect(signedUp.data).toMatchObject({ session: null, user: { phone, user_metadata: { color: "red" } } });
    const early = await client.auth.signInWithPassword({ phone, password: PASSWORD });
    expect(early.error).toMatchObject({ code: "phone_not_confirmed" });
    const { otp: token } = (await receive(phone)).message.sms;
    expect((await client.auth.verifyOtp({ phone, token, type: "sms" })).error).toBeNull();
    expect((await newClient().auth.signInWithPassword({ phone, password: PASSWORD })).error).toBeNull();
    const wrong = await newClient().auth.signInWithPassword({ phone, password: "Wrong-Boat-7" });
    expect(wrong.error).toMatchObject({ code: "invalid_credentials" });
    const unknown = await newClient().auth.signInWithPassword({ phone: newPhone(), password: PASSWORD });
    expect(unknown.error).toMatchObject({ code: "invalid_credentials" });
  });

  test("is signed in at once where nothing is confirmed, and can be taken once", async () => {
    const phone = newPhone();
    const { data, error } = await newClient(lenient).auth.signUp({ phone, password: PASSWORD });
    expect(error).toBeNull();
    expect(data.session!.user).toMatchObject({ phone, app_metadata: { provider: "phone" } });
    const second = await newClient(lenient).auth.signUp({ phone, password: PASSWORD });
    expect(second.error).toMatchObject({ code: "user_already_exists" });
    const quiet = await newClient().auth.signUp({ phone, password: PASSWORD });
    expect(quiet.error).toBeNull();
    expect(quiet.data.user!.phone).toBe(phone);
  });

  test("cannot be changed, but sent along as it is", async () => {
    const [client, phone] = [newClient(lenient), newPhone()];
    await client.auth.signUp({ phone, password: PASSWORD });
    const same = await client.auth.updateUser({ phone: `+${phone}`, data: { color: "blue" } });
    expect(same).toMatchObject({ error: null, data: { user: { phone, user_metadata: { color: "blue" } } } });
    const other = await client.auth.updateUser({ phone: newPhone(), data: { color: "red" } });
    expect(other.error).toMatchObject({ code: "phone_provider_disabled" });
    const malformed = await client.auth.updateUser({ phone: "0555" });
    expect(malformed.error).toMatchObject({ code: "validation_failed" });
    expect((await client.auth.getUser()).data.user).toMatchObject({ phone, user_metadata: { color: "blue" } });
  });

  test("receives requests with a signature that the gateway can check", async () => {
    const phone = newPhone();
    await newClient().auth.signInWithOtp({ phone });
    const { headers, body } = await receive(phone);
    const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
    expect(headers["webhook-signature"]).toBe(`v1,${createHmac("sha256", KEY).update(signed).digest("base64")}`);
    expect(Math.abs(Date.now() / 1000 - Number(headers["webhook-timestamp"]))).toBeLessThan(300);
  });

  test("waits a minute for the next code, and is refused in another form or for another channel", async () => {
    const [client, phone] = [newClient(), newPhone()];
    expect((await client.auth.signInWithOtp({ phone })).error).toBeNull();
    expect((await client.auth.resend({ phone, type: "sms" })).error).toMatchObject({
      code: "over_sms_send_rate_limit",
    });
    expect((await client.auth.resend({ phone: newPhone(), type: "phone_change" })).error).toBeNull();
    const malformed = await client.auth.signInWithOtp({ phone: "invalid-phone" });
    expect(malformed.error).toMatchObject({ message: "Invalid phone number format (E.164 required)" });
    const whatsapp = await client.auth.signInWithOtp({ phone: newPhone(), options: { channel: "whatsapp" } });
    expect(whatsapp.error).toMatchObject({ code: "validation_failed" });
    const settings = await fetch(`${service.url}/auth/v1/settings`, { headers: { apikey: "" } });
    expect(settings.status).toBe(401);
  });
});

/** The codes that the number has received, the first one first; waits until there are so many. */
async function codesOf(phone: string, count: number): Promise<string[]> {
  const own = () => texts.filter(({ message }) => message.user.phone === phone);
  await until(() => own().length >= count);
  return own().map(({ message }) => message.sms.otp);
}

describe("a number that somebody else has registered, and that was never confirmed", () => {
  const STRANGERS = "Stranger-Boat-7";
  const signUp = (phone: string, password: string) => newClient(unhurried).auth.signUp({ phone, password });
  const verify = (phone: string, token: string) => newClient(unhurried).auth.verifyOtp({ phone, token, type: "sms" });
  const signIn = (phone: string, password: string) => newClient(unhurried).auth.signInWithPassword({ phone, password });
  const refusesStranger = async (phone: string) =>
    expect((await signIn(phone, STRANGERS)).error).toMatchObject({ code: "invalid_credentials" });

  test("is claimed by a code to sign in: the password of the stranger ends", async () => {
    const phone = newPhone();
    await signUp(phone, STRANGERS);
    await codesOf(phone, 1);
    await newClient(unhurried).auth.signInWithOtp({ phone });
    const [ofSignUp, ofSignIn] = await codesOf(phone, 2);
    expect((await verify(phone, ofSignUp!)).error).toMatchObject({ code: "otp_expired" });
    const { data } = await verify(phone, ofSignIn!);
    expect(data.user).toMatchObject({ phone, phone_confirmed_at: expect.any(String) });
    await refusesStranger(phone);
    await newClient(unhurried).auth.signUp({ phone, password: STRANGERS });
    await refusesStranger(phone);
  });

  test("is claimed by a code that was requested before the stranger signs up again", async () => {
    const phone = newPhone();
    await signUp(phone, STRANGERS);
    await codesOf(phone, 1);
    await newClient(unhurried).auth.signInWithOtp({ phone });
    await codesOf(phone, 2);
    await signUp(phone, STRANGERS);
    const [, , code] = await codesOf(phone, 3);
    expect((await verify(phone, code!)).error).toBeNull();
    await refusesStranger(phone);
  });

  test("is claimed by a repeated code to sign in", async () => {
    const phone = newPhone();
    await signUp(phone, STRANGERS);
    await codesOf(phone, 1);
    await newClient(unhurried).auth.signInWithOtp({ phone });
    await codesOf(phone, 2);
    await newClient(unhurried).auth.resend({ phone, type: "sms" });
    const [, , code] = await codesOf(phone, 3);
    expect((await verify(phone, code!)).error).toBeNull();
    await refusesStranger(phone);
  });

  test("keeps the password of a sign-up whose own code, also a repeated one, confirms it", async () => {
    const phone = newPhone();
    await signUp(phone, PASSWORD);
    await codesOf(phone, 1);
    await newClient(unhurried).auth.resend({ phone, type: "sms" });
    const [, code] = await codesOf(phone, 2);
    expect((await verify(phone, code!)).error).toBeNull();
    expect((await signIn(phone, PASSWORD)).error).toBeNull();
  });
});

test("a confirmed number keeps its password when its user signs in by a code", async () => {
  const phone = newPhone();
  const client = newClient(unhurried);
  await client.auth.signUp({ phone, password: PASSWORD });
  const [first] = await codesOf(phone, 1);
  expect((await client.auth.verifyOtp({ phone, token: first!, type: "sms" })).error).toBeNull();
  await client.auth.signInWithOtp({ phone });
  const [, second] = await codesOf(phone, 2);
  expect((await client.auth.verifyOtp({ phone, token: second!, type: "sms" })).error).toBeNull();
  expect((await newClient(unhurried).auth.signInWithPassword({ phone, password: PASSWORD })).error).toBeNull();
});

test("an account with a confirmed address keeps its password when its number is confirmed", async () => {
  const [email, phone] = [`${newPhone()}@example.org`, newPhone()];
  const { data } = await newClient(lenient).auth.signUp({ email, password: PASSWORD });
  await withClient(database.ownerUrl, (owner) =>
    owner.query("select auth.set_phone(user_id, $1, false) from auth.users where email = $2", [
      phone,
      data.user!.email,
    ]),
  );
  await newClient(unhurried).auth.signInWithOtp({ phone });
  const [token] = await codesOf(phone, 1);
  const { data: verified } = await newClient(unhurried).auth.verifyOtp({ phone, token: token!, type: "sms" });
  expect(verified.user).toMatchObject({ email, phone, phone_confirmed_at: expect.any(String) });
  expect((await newClient(lenient).auth.signInWithPassword({ email, password: PASSWORD })).error).toBeNull();
});
