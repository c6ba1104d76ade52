import { generate } from "otplib";
import { describe, expect, test } from "vitest";
import { useFixture } from "../../../fixture.ts";
import { type Gateways, newFactor, newPerson, newSession, openGateways, PASSWORD } from "../gateways.ts";

const gateways = useFixture(openGateways);

const at = (path: string) => `${gateways.one.url}${path}`;
const atOther = (path: string) => `${gateways.two.url}${path}`;
const post: Gateways["post"] = (...sent) => gateways.post(...sent);
const login = (username: string, code?: string, to = at) =>
  post(to("/auth/login"), { username, password: PASSWORD, code });

describe("an enrolment", () => {
  test("returns a secret and a QR code, then ten backup codes for a code of the app", async () => {
    const { pair, email } = await newPerson(gateways);
    const token = pair.accessToken;
    const { status, body } = await post(at("/api/mfa/enable"), undefined, { token });
    expect(status).toBe(200);
    expect(body).toEqual({
      secret: expect.stringMatching(/^[A-Z2-7]{32}$/),
      qrCode: expect.stringMatching(/^data:image\/png;base64,/),
      message: expect.any(String),
    });
    expect((await login(email)).status).toBe(200);

    const code = await generate({ secret: body.secret });
    const verified = await post(atOther(`/api/mfa/verify?code=${code}`), undefined, { token });
    expect(verified.status).toBe(200);
    expect(verified.body).toEqual({
      message: expect.any(String),
      backupCodes: expect.any(Array),
      warning: expect.any(String),
    });
    expect(verified.body.backupCodes).toHaveLength(10);
    for (const each of verified.body.backupCodes) expect(each).toMatch(/^[a-z2-9]{8}$/);
    expect(await login(email)).toMatchObject({ status: 401, body: { error: { code: "MFA_REQUIRED" } } });
  });

  test("continues after a wrong code, and must be started first", async () => {
    const { pair } = await newPerson(gateways);
    const token = pair.accessToken;
    const verify = (code: string) => post(at(`/api/mfa/verify?code=${code}`), undefined, { token });
    expect(await verify("123456")).toMatchObject({ status: 400, body: { error: { code: "VALIDATION_ERROR" } } });
    const { secret } = (await post(at("/api/mfa/enable"), undefined, { token })).body;
    expect(await verify("000")).toMatchObject({ status: 400, body: { error: { code: "INVALID_CODE" } } });
    const missing = await post(at("/api/mfa/verify"), undefined, { token });
    expect(missing).toMatchObject({ status: 400, body: { error: { code: "MISSING_FIELD" } } });
    expect((await verify(await generate({ secret }))).status).toBe(200);
  });

  test("requires a signed-in user, by token or session", async () => {
    const { email } = await newPerson(gateways);
    expect(await post(at("/api/mfa/enable"))).toMatchObject({
      status: 401,
      body: { error: { code: "AUTH_REQUIRED" } },
    });
    const headers = await newSession(gateways, email);
    expect((await post(at("/api/mfa/enable"), undefined, { headers })).status).toBe(200);
  });
});

describe("a two-factor code", () => {
  test("of the app works once at login, at any gateway", async () => {
    const { email, pair } = await newPerson(gateways);
    const { secret, code } = await newFactor(gateways, pair.accessToken);
    // The one that was shown at the enrolment has been used.
    expect(await login(email, code)).toMatchObject({ status: 401, body: { error: { code: "INVALID_CODE" } } });
    const next = await generate({ secret, epoch: Math.floor(Date.now() / 1000) + 30 });
    expect((await login(email, next)).status).toBe(200);
    expect((await login(email, next, atOther)).status).toBe(401);
  });

  test("of the backup codes works once, also for two concurrent logins", async () => {
    const { email, pair } = await newPerson(gateways);
    const { backupCodes } = await newFactor(gateways, pair.accessToken);
    const result = await Promise.all([login(email, backupCodes[0]), login(email, backupCodes[0], atOther)]);
    expect(result.map(({ status }) => status).sort()).toEqual([200, 401]);
    const session = { username: email, password: PASSWORD, code: backupCodes[1] };
    expect((await post(at("/api/auth/login"), session)).status).toBe(200);
  });

  test("is required to renew the backup codes and to disable the app", async () => {
    const { email, pair } = await newPerson(gateways);
    const token = pair.accessToken;
    const { backupCodes } = await newFactor(gateways, token);
    expect((await post(at("/api/mfa/disable"), undefined, { token })).status).toBe(400);
    const wrong = await post(at("/api/mfa/disable?code=aaaaaaaa"), undefined, { token });
    expect(wrong).toMatchObject({ status: 400, body: { error: { code: "INVALID_CODE" } } });

    const renewed = await post(at(`/api/mfa/backup-codes?code=${backupCodes[0]}`), undefined, { token });
    expect(renewed.body.backupCodes).toHaveLength(10);
    expect((await login(email, backupCodes[1])).status).toBe(401);
    const disabled = await post(at(`/api/mfa/disable?code=${renewed.body.backupCodes[0]}`), undefined, { token });
    expect(disabled).toMatchObject({ status: 200, body: { message: expect.any(String) } });
    expect((await login(email)).status).toBe(200);
  });
});
