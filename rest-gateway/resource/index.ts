export { makeResourceInterface } from "./dialect.ts";
export { makeReadIntent, makeResourcePlanner, parentConditions, rowConditions } from "./intents.ts";
export { findTarget, parseAddress, type ResourceTarget } from "./parse/address.ts";
export { selectEveryField } from "./parse/fields.ts";
