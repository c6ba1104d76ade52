/** The path prefix of the table interface. */
export const TABLE_PREFIX = "/rest/v1";
