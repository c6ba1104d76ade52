export { authenticateTableCaller } from "./authenticate.ts";
export { makeTableInterface, makeTablePlanner, preRequestStatement, tableParseSettings } from "./dialect.ts";
export { NO_BODY } from "./parse/body.ts";
export { parseQueryParameters } from "./parse/query-parameters.ts";
export { parseQueryString } from "./parse/query-string.ts";
export { parseTableRequest } from "./parse/request.ts";
