import { expect, test } from "vitest";
import {
  type ApiVersion,
  deprecationNotice,
  versionRetired,
} from "../../../../rest-gateway/resource/parse/versions.ts";

const version = (more: Partial<ApiVersion>): ApiVersion => ({
  number: 1,
  status: "deprecated",
  sunset: null,
  successor: null,
  migrationGuide: null,
  ...more,
});

test("a current version has no notice", () => {
  expect(deprecationNotice(version({ status: "current" }))).toBeNull();
  expect(deprecationNotice(version({ status: "supported", successor: 2 }))).toBeNull();
});

test("a deprecated version has its sunset date and its successor", () => {
  const notice = deprecationNotice(
    version({ sunset: new Date("2030-06-07T08:09:10Z"), successor: 2, migrationGuide: "https://x/" }),
  )!;
  expect(notice.body).toEqual({
    deprecated: true,
    message: "Version 1 is deprecated and ends on 2030-06-07. Move to version 2.",
    sunset: "2030-06-07T08:09:10.000Z",
    migrationGuide: "https://x/",
  });
  expect(notice.headers("/api/v1/notes/7", "")).toEqual({
    "X-API-Warn": notice.body.message,
    "X-API-Sunset": "Fri, 07 Jun 2030 08:09:10 GMT",
    Link: "</api/v2/notes/7>; rel=successor-version",
  });
  expect(notice.headers("/users", "").Link).toBe("</api/v2/users>; rel=successor-version");
  expect(notice.headers("/api/notes", "").Link).toBe("</api/v2/notes>; rel=successor-version");
});

test("an undecided date is omitted", () => {
  const { headers, body } = deprecationNotice(version({}))!;
  expect([headers("/users", ""), body.sunset]).toEqual([{ "X-API-Warn": "Version 1 is deprecated." }, null]);
});

test("a retired version is 410", () => {
  const error = versionRetired(
    version({ status: "retired", successor: 2, migrationGuide: "https://x/" }),
    "/users",
    "",
  );
  expect([error.status, error.code, error.message]).toEqual([
    410,
    "VERSION_RETIRED",
    "Version 1 is retired. Move to version 2. https://x/",
  ]);
  expect(error.headers.Link).toBe("</api/v2/users>; rel=successor-version");
});
