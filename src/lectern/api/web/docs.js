// Describes the API from its openapi.json: every operation with its fields. It loads nothing from other hosts.
"use strict";

function node(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function typeOf(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(", ");
  return schema.type === "array" ? `list of ${typeOf(schema.items)}` : schema.type || "";
}

function bounds(schema) {
  const texts = [];
  for (const part of [schema, ...(schema.anyOf || [])]) {
    if (part.minimum !== undefined || part.maximum !== undefined) texts.push(`${part.minimum ?? "…"} to ${part.maximum ?? "…"}`);
    if (part.maxLength !== undefined) texts.push(`${part.minLength ?? 0} to ${part.maxLength} characters`);
  }
  return texts.join("; ");
}

function fields(schema, schemas) {
  const table = node("table", {});
  const model = schemas[typeOf(schema)] || schema;
  for (const [name, field] of Object.entries(model.properties || {})) {
    const required = (model.required || []).includes(name) ? " (required)" : "";
    table.append(node("tr", {}, node("td", {}, node("code", {}, name), required), node("td", {}, typeOf(field)), node("td", {}, [field.description, bounds(field)].filter(Boolean).join(" "))));
  }
  return table;
}

fetch("openapi.json").then((response) => response.json()).then((api) => {
  const page = document.getElementById("operations");
  const schemas = api.components ? api.components.schemas : {};
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const part = node("section", {}, node("h2", {}, node("code", {}, `${method.toUpperCase()} ${path}`)), node("p", {}, operation.description || ""));
      const body = operation.requestBody && operation.requestBody.content["application/json"].schema;
      if (body) part.append(node("p", { class: "quiet" }, "Request"), fields(body, schemas));
      const answer = operation.responses["200"] && operation.responses["200"].content && operation.responses["200"].content["application/json"];
      if (answer) part.append(node("details", {}, node("summary", {}, `Answers with ${typeOf(answer.schema)}`), fields(answer.schema, schemas)));
      page.append(part);
    }
  }
});
