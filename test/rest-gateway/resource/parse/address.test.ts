import { expect, test } from "vitest";
import { parseAddress } from "../../../../rest-gateway/resource/parse/address.ts";

test.each([
  ["/users", { version: null, base: "", segments: ["users"], canonical: "/users" }],
  ["/users/7", { version: null, base: "", segments: ["users", "7"], canonical: "/users/7" }],
  ["/api/v12/notes", { version: "12", base: "/api/v12", segments: ["notes"], canonical: "/api/v12/notes" }],
  ["/api/notes/A%2Fb", { version: null, base: "/api", segments: ["notes", "A%2Fb"], canonical: "/api/notes/A%2Fb" }],
  [
    "/API/V1/Order_Lines/X/",
    { version: "1", base: "/api/v1", segments: ["order-lines", "X"], canonical: "/api/v1/order-lines/X" },
  ],
  ["/Order%20Lines/", { version: null, base: "", segments: ["order-lines"], canonical: "/order-lines" }],
  ["/apiary", { version: null, base: "", segments: ["apiary"], canonical: "/apiary" }],
  ["/api/vx/notes", { version: null, base: "/api", segments: ["vx", "notes"], canonical: "/api/vx/notes" }],
  ["/%zz", { version: null, base: "", segments: ["-zz"], canonical: "/-zz" }],
  ["/", { version: null, base: "", segments: [""], canonical: "/" }],
])("%s", (path, address) => {
  expect(parseAddress(path)).toEqual(address);
});
