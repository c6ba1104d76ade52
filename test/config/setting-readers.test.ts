import { createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { parseCronItem } from "graphile-worker";
import { describe, expect, test } from "vitest";
import {
  claimPath,
  cronSchedule,
  flag,
  headerName,
  integer,
  jwtSecrets,
  keyValues,
  list,
  mailAddress,
  origins,
  postgresUrl,
  postgresUrls,
  privateKey,
  publicKeys,
  ratio,
  smtpUrl,
  trustProxy,
} from "../../config/setting-readers.ts";

describe("readers", () => {
  test.each([
    [".role", ["role"]],
    [".app_metadata.role", ["app_metadata", "role"]],
    ['."https://example.com/roles"[0]', ["https://example.com/roles", 0]],
  ])("claimPath reads %s", (text, steps) => {
    expect(claimPath(text)).toEqual(steps);
  });

  test("keyValues reads the format of OpenTelemetry's settings", () => {
    expect(keyValues("")).toEqual({});
    expect(keyValues("team=shop, deployment.environment.name=a%2Cb,empty=")).toEqual({
      team: "shop",
      "deployment.environment.name": "a,b",
      empty: "",
    });
    for (const text of ["team", "=shop", "team=100%"]) expect(() => keyValues(text)).toThrow("pairs like name=value");
  });

  test("ratio accepts a fraction of one", () => {
    expect([ratio("0"), ratio("0.25"), ratio("1")]).toEqual([0, 0.25, 1]);
    for (const text of ["1.5", "-1", "half"]) expect(() => ratio(text)).toThrow("a number from 0 to 1");
  });

  test.each(["role", "", ".", ".a..b", '."open', ".a[x]"])("claimPath refuses %j", (text) => {
    expect(() => claimPath(text)).toThrow("a path such as");
  });

  test.each(["0 3 * * *", "*/15 0-6,22 1,15 * 1-5", "59 23 31 12 7"])("cronSchedule accepts %j", (text) => {
    expect(cronSchedule(`  ${text} `)).toBe(text);
    expect(parseCronItem({ task: "any", match: text })).toMatchObject({ task: "any" });
  });

  test.each([
    "",
    "0 3 * *",
    "60 * * * *",
    "* 24 * * *",
    "* * 0 * *",
    "*/0 * * * *",
    "1,,2 * * * *",
    "@daily",
    "0 3 * * MON",
  ])("cronSchedule refuses %j", (text) => {
    expect(() => cronSchedule(text)).toThrow("a time in cron's syntax");
  });

  test.each(["1e3", "0x10", "", " ", "1.5", "70000", "-1"])("integer refuses %j", (text) => {
    expect(() => integer(0, 65_535)(text)).toThrow("a whole number from 0 to 65535");
  });

  test.each([
    ["yes", true],
    ["ON", true],
    ["0", false],
    ["False", false],
  ])("flag reads %s", (text, value) => {
    expect(flag(text)).toBe(value);
  });

  test("list drops empty elements", () => {
    expect(list(" api , ,public,")).toEqual(["api", "public"]);
  });

  test("a header name is any except those that delimit a message", () => {
    expect(headerName("X-Request-Id")).toBe("X-Request-Id");
    for (const name of ["", "a b", "a:", "é", "Content-Length", "transfer-encoding", "Connection"]) {
      expect(() => headerName(name)).toThrow("a header's name");
    }
  });

  test("origins are whole origins, or all", () => {
    expect(origins("*")).toBe("*");
    expect(origins("https://a.example, http://localhost:5173")).toEqual(["https://a.example", "http://localhost:5173"]);
    expect(() => origins("https://a.example/path")).toThrow("origins such as");
  });

  test.each([
    ["1", 1],
    ["true", true],
    ["loopback, 10.0.0.0/8", ["loopback", "10.0.0.0/8"]],
  ])("trustProxy reads %s as Express does", (text, value) => {
    expect(trustProxy(text)).toEqual(value);
  });

  test("a private key may be written on one line, or with Windows line ends", () => {
    const { privateKey: key } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const pem = key.export({ type: "pkcs8", format: "pem" }) as string;
    expect(privateKey(pem.replaceAll("\n", "\\n"))).toBe(pem);
    expect(privateKey(pem.replaceAll("\n", "\r\n"))).toBe(pem);
  });

  test.each([
    ["secret", () => "secret"],
    ["garbage in PEM form", () => "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"],
    ["an elliptic key of another curve", () => pemOf(generateKeyPairSync("ec", { namedCurve: "P-384" }))],
    ["an Ed25519 key", () => pemOf(generateKeyPairSync("ed25519"))],
    ["a short key", () => pemOf(generateKeyPairSync("rsa", { modulusLength: 1024 }))],
  ])("a private key is not: %s", (_what, make) => {
    expect(() => privateKey(make())).toThrow("an RSA private key of at least 2048 bits or an EC key (P-256)");
  });

  test("previous keys may be several, public or private, and on one line", () => {
    const pems = [
      pemOf(generateKeyPairSync("rsa", { modulusLength: 2048 })),
      pemOf(generateKeyPairSync("ec", { namedCurve: "P-256" })),
    ];
    const publicPem = createPublicKey(pems[0]!).export({ type: "spki", format: "pem" }) as string;
    const read = publicKeys(`${publicPem}${pems[1]}`.replaceAll("\n", "\\n"));
    expect(read.map((pem) => `${pem}\n`)).toEqual([publicPem, pems[1]]);
    for (const text of ["secret", pemOf(generateKeyPairSync("ec", { namedCurve: "P-384" }))]) {
      expect(() => publicKeys(text)).toThrow("RSA keys of at least 2048 bits");
    }
  });

  test("previous secrets have the same minimum length as the current one", () => {
    const [one, other] = ["x".repeat(32), "y".repeat(32)];
    expect(jwtSecrets(`${one}, ${other}`)).toEqual([one, other]);
    expect(() => jwtSecrets(`${one},short`)).toThrow("at least 32 characters");
  });

  test("a sender is an address, with or without a name", () => {
    for (const text of ["us@example.org", "Example Ltd <us@example.org>"]) expect(mailAddress(text)).toBe(text);
    for (const text of [
      "us",
      "us@example.org, them@example.org",
      "a\r\nBcc: b@c <us@example.org>",
      "<us@example.org>",
    ]) {
      expect(() => mailAddress(text)).toThrow("an address such as");
    }
  });

  test("a mail server has a URL of its own scheme", () => {
    for (const text of ["smtp://mail.example.org", "smtps://u:p@mail.example.org:465"])
      expect(smtpUrl(text)).toBe(text);
    for (const text of ["mail.example.org", "http://mail.example.org", "smtp:"]) {
      expect(() => smtpUrl(text)).toThrow("an address such as smtp://");
    }
  });

  test.each(["foo", "10.0.0.0/33", "1.2.3", "::1/129", "10.0.0.0/8/8"])("trustProxy refuses %s", (text) => {
    expect(() => trustProxy(text)).toThrow("addresses such as loopback");
  });

  test.each(["postgres://db", "postgres://u@db:99999/app", "postgres://u@db/", "http://db/app"])(
    "postgresUrl refuses %s",
    (text) => {
      expect(() => postgresUrl(text)).toThrow("a connection string like");
    },
  );

  test("postgresUrl explains what is wrong with several hosts", () => {
    expect(() => postgresUrl("postgresql://a,b/app?target_session_attrs=master")).toThrow(
      "a connection string in which target_session_attrs is one of any, read-write",
    );
  });

  test("postgresUrls reads one server for each host", () => {
    expect(postgresUrls("postgresql://u@a/app, postgresql://u@b:1,c/app?x=1,postgres://d/app")).toEqual([
      "postgresql://u@a/app",
      "postgresql://u@/app?x=1&host=b&port=1",
      "postgresql://u@/app?x=1&host=c&port=5432",
      "postgres://d/app",
    ]);
    expect(postgresUrls("postgresql://u@a/app,")).toHaveLength(1);
    expect(() => postgresUrls("postgresql://u@a/app, postgresql://b")).toThrow("a connection string like");
  });

  test.each(["#", "/", "?"])("the error of postgresUrl explains how to write a password with %s", (sign) => {
    expect(() => postgresUrl(`postgresql://u:p${sign}ss@db/app`)).toThrow("percent-encoded");
    expect(() => postgresUrl(`postgresql://u:p@s${sign}s#w@db/app`)).toThrow("percent-encoded");
    expect(postgresUrl(`postgresql://u:p${encodeURIComponent(sign)}ss@db/app`)).toContain("@db/app");
  });

  test.each([
    "postgresql://u:p%40ss@db:5432/app?sslmode=require",
    "postgresql://u@/app?host=%2Ftmp&port=5433",
    "postgresql://u@a:5432,[::1]:5433,c/app?target_session_attrs=read-write",
    "postgresql://u@/app?host=a,b&port=5432,5433",
  ])("postgresUrl reads %s", (text) => {
    expect(postgresUrl(text)).toBe(text);
  });
});

function pemOf({ privateKey: key }: { privateKey: KeyObject }): string {
  return key.export({ type: "pkcs8", format: "pem" }) as string;
}
