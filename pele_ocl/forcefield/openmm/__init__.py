"""OpenMM: conversion of a System to Atoms, and force fields in OpenMM XML files."""
