import { expect, test } from "vitest";
import { HttpError } from "../../http/http-error.ts";
import type { GatewayRequest } from "../../http/request.ts";
import { makeRouter } from "../../http/router.ts";
import { makeLogger } from "../../runtime/log/log.ts";

test.each([
  ["PGRST205", 404, true],
  ["PGRST202", 404, true],
  ["42703", 400, true],
  ["RESOURCE_NOT_FOUND", 404, true],
  ["USER_NOT_FOUND", 404, false],
  ["23505", 409, false],
  ["AUTH_REQUIRED", 401, false],
])("a request that is refused by %s (%i) has named a missing object: %s", async (code, status, isUnknown) => {
  let unknown = 0;
  const serve = makeRouter({
    routes: {
      "/": {
        GET: () => {
          throw new HttpError(status, code, "No.");
        },
      },
    },
    errorBody: "nested",
    log: makeLogger({ logLevel: "silent" }),
    onUnknownName: () => unknown++,
  });
  const request = { id: "1", method: "GET", path: "/", rawQuery: "", headers: {}, admit() {}, stages: { enter() {} } };
  expect((await serve(request as unknown as GatewayRequest)).status).toBe(status);
  expect(unknown).toBe(isUnknown ? 1 : 0);
});
