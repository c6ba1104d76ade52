import { createHmac, randomInt } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Service } from "../../../service.ts";
import { cloneDatabase, type TestDatabase } from "../../database.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";
import { makeClient, PASSWORD } from "./auth-client.ts";

const KEY = Buffer.alloc(32, 7);

type SentText = {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly message: { readonly user: { readonly phone: string }; readonly sms: { readonly otp: string } };
};

let gateway: Server;
const texts: SentText[] = [];
let database: TestDatabase;
let service: Service;
/** Accounts count as confirmed at once. */
let lenient: Service;

beforeAll(async () => {
  gateway = createServer(async (request, response) => {
    const body = await text(request);
    texts.push({ headers: request.headers, body, message: JSON.parse(body) });
    response.end("{}");
  });
  await new Promise<void>((resolve) => gateway.listen(0, "127.0.0.1", resolve));
  database = await cloneDatabase();
  const settings = {
    SMS_WEBHOOK_URL: `http://127.0.0.1:${(gateway.address() as AddressInfo).port}/texts`,
    SMS_WEBHOOK_SECRET: `v1,whsec_${KEY.toString("base64")}`,
  };
  service = await serve(database, { ...settings, AUTH_AUTOCONFIRM: "false" });
  lenient = await serve(database, { ...settings, AUTH_AUTOCONFIRM: "true" });
});
afterAll(async () => {
  await Promise.all([service.stop(), lenient.stop()]);
  gateway.close();
  await database.drop();
});

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
