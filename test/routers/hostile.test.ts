import { testThrough } from "./acceptance.ts";
import { startRouter } from "./router.ts";

testThrough("a router that gives each statement another session", {
  start: (postgres) => startRouter("hostile", postgres),
});
