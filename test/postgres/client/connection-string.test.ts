import pg from "pg";
import { describe, expect, test } from "vitest";
import {
  findServersError,
  findTlsError,
  parseServers,
  toPgConnectionString,
  toPrimaryUrl,
  withFirstHost,
  withLogin,
} from "../../../config/connection-string.ts";

describe("a connection string as pg parses it", () => {
  test.each([
    "postgresql://u:p%40ss@db:5432/app",
    "postgresql://u@/app?host=%2Ftmp&port=5433",
    "postgresql://u@db/app?sslmode=disable",
    "postgresql://u@db/app?sslmode=no-verify",
    "postgresql://u@db/app?sslmode=require&uselibpqcompat=true",
  ])("%s stays as it is", (url) => expect(toPgConnectionString(url)).toBe(url));

  test.each([
    ["require", "postgresql://u@db/app?sslmode=require&uselibpqcompat=true"],
    ["verify-full&sslrootcert=system", "postgresql://u@db/app?sslmode=verify-full&uselibpqcompat=true"],
    [
      "verify-ca&sslrootcert=%2Fa%20b.crt",
      "postgresql://u@db/app?sslmode=verify-ca&sslrootcert=%2Fa+b.crt&uselibpqcompat=true",
    ],
  ])("sslmode=%s is libpq's", (mode, read) =>
    expect(toPgConnectionString(`postgresql://u@db/app?sslmode=${mode}`)).toBe(read),
  );
});

describe("the TLS settings of a connection string", () => {
  const faultOf = (parameters: string) =>
    findTlsError(`postgresql://u@db/app?${parameters}`, (file) => file === "/there");

  test.each([
    "",
    "sslmode=require",
    "sslmode=verify-full&sslrootcert=system",
    "sslrootcert=/there&sslmode=verify-ca",
    "sslcert=/there&sslkey=/there",
  ])("%j can be tried", (parameters) => expect(faultOf(parameters)).toBeNull());

  test.each([
    ["sslmode=prefer", /one of disable, no-verify, require, verify-ca, verify-full/],
    ["sslmode=verify-ca", /needs a file in sslrootcert/],
    ["sslmode=verify-ca&sslrootcert=system", /needs a file/],
    ["sslrootcert=/gone", /file of sslrootcert/],
    ["sslcert=/there&sslkey=/gone", /file of sslkey/],
    ["sslcert=/there", /belong together/],
  ])("%s is refused", (parameters, words) => expect(faultOf(parameters)).toMatch(words));
});

describe("the servers of a connection string", () => {
  const addressOf = (url: string) => {
    const { host, port, user, password, database } = new pg.Client({ connectionString: url });
    return { host, port, user, password, database };
  };
  const namesOf = (url: string) => parseServers(url).servers.map(({ name }) => name);

  test.each([
    "postgresql://u:p%40ss@db:5432/app?sslmode=require",
    "postgresql://u@/app?host=%2Ftmp&port=5433",
    "postgresql://u@[::1]:5433/app?target_session_attrs=primary",
  ])("%s has one, and stays as it is", (url) =>
    expect(parseServers(url).servers.map((each) => each.url)).toEqual([url]),
  );

  test.each([
    [
      "postgresql://u:p%2Cw@a:5433,b/app",
      ["a:5433", "b"],
      [
        ["a", 5433],
        ["b", 5432],
      ],
    ],
    [
      "postgresql://u:p%2Cw@[::1]:1,[fe80::2]/app",
      ["[::1]:1", "[fe80::2]"],
      [
        ["::1", 1],
        ["fe80::2", 5432],
      ],
    ],
    [
      "postgresql://u:p%2Cw@/app?host=a,b&port=1,2",
      ["a:1", "b:2"],
      [
        ["a", 1],
        ["b", 2],
      ],
    ],
    [
      "postgresql://u:p%2Cw@/app?host=/x,/y&port=7",
      ["/x:7", "/y:7"],
      [
        ["/x", 7],
        ["/y", 7],
      ],
    ],
    [
      "postgresql://u:p%2Cw@%2Fx,b:9/app",
      ["/x", "b:9"],
      [
        ["/x", 5432],
        ["b", 9],
      ],
    ],
  ])("%s has the password and the database for all", (url, names, addresses) => {
    expect(namesOf(url)).toEqual(names);
    expect(parseServers(url).servers.map((server) => addressOf(server.url))).toEqual(
      addresses.map(([host, port]) => ({ host, port, user: "u", password: "p,w", database: "app" })),
    );
  });

  test("are named without the password, also if it has an unescaped @", () =>
    expect(namesOf("postgresql://u:p@ss@db/app")).toEqual(["db"]));

  test("keep the other parameters, and not those of the search", () => {
    const url = "postgresql://u@a,b/app?sslmode=disable&target_session_attrs=standby&load_balance_hosts=random";
    const { servers, wanted, isBalanced } = parseServers(url);
    expect({ wanted, isBalanced }).toEqual({ wanted: "standby", isBalanced: true });
    expect(servers[1]!.url).toBe("postgresql://u@/app?sslmode=disable&host=b&port=5432");
  });

  test.each([
    ["postgresql://a,b/app?target_session_attrs=master", /one of any, read-write, read-only, primary/],
    ["postgresql://a,b/app?load_balance_hosts=on", /one of disable, random/],
    ["postgresql://u@/app?host=a,b,c&port=1,2", /as many as there are hosts/],
    ["postgresql://a,,b/app", /no host between commas is empty/],
    ["postgresql://a:0,b/app", /number from 1 to 65535/],
    ["postgresql://a,b:99999/app", /number from 1 to 65535/],
    ["postgresql://a,b:x/app", /number from 1 to 65535/],
  ])("%s is refused", (url, words) => expect(findServersError(url)).toMatch(words));

  test.each([
    "postgresql://a,b/app",
    "postgresql://a:1,b/app?target_session_attrs=any",
    "postgresql://u@/app?host=/tmp",
  ])("%s is accepted", (url) => expect(findServersError(url)).toBeNull());

  test("are those of a primary for writes, unless the connection string says otherwise", () => {
    expect(toPrimaryUrl("postgresql://a/app")).toBe("postgresql://a/app?target_session_attrs=primary");
    expect(toPrimaryUrl("postgresql://a/app?x=1")).toBe("postgresql://a/app?x=1&target_session_attrs=primary");
    expect(toPrimaryUrl("postgresql://a/app?target_session_attrs=any")).toContain("=any");
  });

  test("can be reduced to the first one", () => {
    expect(withFirstHost("postgresql://u:p@a:1,b:2/app?x=1")).toBe("postgresql://u:p@a:1/app?x=1");
    expect(withFirstHost("postgresql://u:p@a:1/app")).toBe("postgresql://u:p@a:1/app");
  });
});

test("a connection string gets another user, whatever named the first", () => {
  const login = { name: "a b", password: "p/@" };
  expect(withLogin("postgresql://owner:old@h:1,i:2/db?sslmode=disable&user=x&password=y", login)).toBe(
    "postgresql://a%20b:p%2F%40@h:1,i:2/db?sslmode=disable",
  );
  expect(withLogin("postgresql:///db?host=%2Ftmp", login)).toBe("postgresql://a%20b:p%2F%40@/db?host=%2Ftmp");
});
