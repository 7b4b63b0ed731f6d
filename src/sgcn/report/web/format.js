"use strict";
// Small tools: elements, and numbers in words.

const SVG = document.querySelector("svg").namespaceURI;
const NONE = "–";

/** An element with attributes and children; text is text, never markup. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const byId = (id) => document.getElementById(id);
const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/** A number with so many decimals and a comma at thousands. */
function fixed(value, decimals) {
  if (!isNumber(value)) return NONE;
  return value.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

/** About four digits, whatever the size. */
function digits(value) {
  if (!isNumber(value)) return NONE;
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
  return size >= 1000 ? fixed(value, 0) : String(Number(value.toPrecision(4)));
}

/** Decimals that suit a whole column, so that its points stand in line. */
function decimalsFor(values) {
  const largest = Math.max(0, ...values.filter(isNumber).map(Math.abs));
  return largest < 100 ? 2 : largest < 1e5 ? 1 : 0;
}

/** Round numbers between low and high, about so many. */
function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const made = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) made.push(k * step || 0); // no -0
  return { values: made, text: (value) => tickText(value, step) };
}

function tickText(value, step) {
  const size = Math.abs(value);
  if (size >= 1e4) return `${Number((value / (size >= 1e6 ? 1e6 : 1e3)).toPrecision(4))}${size >= 1e6 ? "M" : "k"}`;
  if (size !== 0 && step < 1e-4) return value.toExponential(1);
  return fixed(value, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
}

/** Powers of ten between low and high, or round numbers if there are fewer than two. */
function logTicks(low, high, count) {
  const made = [];
  const from = Math.ceil(Math.log10(low) - 1e-9), to = Math.floor(Math.log10(high) + 1e-9);
  const stride = Math.max(1, Math.ceil((to - from + 1) / (count + 1)));
  for (let k = from; k <= to; k += stride) made.push(10 ** k);
  if (made.length < 2) return ticks(low, high, count);
  return { values: made, text: (value) => (value >= 1e-3 && value < 1e4 ? String(Number(value.toPrecision(1))) : value.toExponential(0)) };
}
